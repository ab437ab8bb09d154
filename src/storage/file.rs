//! A database's file, and whether it is still where it was opened.
//!
//! A process goes on writing a file that somebody has removed or replaced, and nobody will ever
//! read what it writes. The database can't tell; the file system can.

use std::path::PathBuf;

use super::sqlite;

/// The file that a node's database is.
#[derive(Debug, Clone)]
pub struct DatabaseFile {
    path: PathBuf,
    identity: Option<Identity>,
}

impl DatabaseFile {
    /// The file of a database that is open; none where the URL names no file. Blocks for a
    /// moment on the file system.
    pub fn of(url: &str) -> Option<Self> {
        let path = sqlite::file_of(url)?;
        let identity = Identity::at(&path);
        Some(Self { path, identity })
    }

    /// Whether the same file is still at its path. Blocks for a moment on the file system.
    pub fn is_in_place(&self) -> bool {
        self.identity.is_some() && Identity::at(&self.path) == self.identity
    }
}

/// What tells one file from another of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl Identity {
    #[cfg(unix)]
    fn at(path: &std::path::Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;

        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    #[cfg(not(unix))]
    fn at(path: &std::path::Path) -> Option<Self> {
        path.exists().then_some(Self {})
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_or_another_is_not_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wow.db");
        std::fs::write(&path, "one").unwrap();
        let file = DatabaseFile::of(&format!("sqlite://{}", path.display())).unwrap();
        assert!(file.is_in_place());
        let aside = folder.path().join("aside.db");
        std::fs::rename(&path, &aside).unwrap();
        assert!(!file.is_in_place());
        std::fs::write(&path, "one").unwrap();
        assert!(!file.is_in_place(), "another file of its name");
        std::fs::rename(&aside, &path).unwrap();
        assert!(file.is_in_place());
    }

    #[test]
    fn memory_and_servers_have_no_file() {
        for url in ["memory:", "postgres://db/wow", "mysql://db/wow"] {
            assert!(DatabaseFile::of(url).is_none(), "{url}");
        }
    }
}
