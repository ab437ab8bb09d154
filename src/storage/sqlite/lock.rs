//! One node for each file: an exclusive lock that the operating system holds for the process.
//!
//! SQLite itself lets several processes write one file. Two nodes on it would both believe that
//! they own every partition, and each would miss what the other commits, so the second is
//! refused (R70). The lock is on a file beside the database, because SQLite's own locks and a
//! lock of ours on the same file would get in each other's way. It goes with the process, however
//! that ends; the file stays, since removing it would let two processes lock two files of one name.
//!
//! A file has one name here: links are followed to it, and one that has several names is refused,
//! for SQLite keeps its journal beside the name it was opened by, and two nodes on two names
//! would each overwrite what the other has committed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::super::error::OpenError;

/// The lock; released when it is dropped, or its process ends.
#[derive(Debug)]
pub(super) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock of a database file. Blocks for a moment on the file system.
    ///
    /// # Errors
    /// [`OpenError::InUse`] where another process has it.
    pub(super) fn take(database: &Path) -> Result<Self, OpenError> {
        let path = lock_path(&true_path(database)?);
        let failed = |source| OpenError::File {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let read = file.read_to_string(&mut holder);
                let holder = read.ok().map(|_| holder.trim().to_owned());
                return Err(OpenError::InUse {
                    path: database.to_owned(),
                    holder: holder.filter(|holder| !holder.is_empty()),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // The process id is for people who wonder who holds the file; nothing depends on it.
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// The one name of the file, with links followed; the given one where it isn't there yet.
fn true_path(database: &Path) -> Result<PathBuf, OpenError> {
    let failed = |source| OpenError::File {
        path: database.to_owned(),
        source,
    };
    match database.canonicalize() {
        Ok(path) => {
            refuse_other_names(&path)?;
            Ok(path)
        }
        // A link to nowhere would be made a file behind the lock's back.
        Err(_) if database.is_symlink() => Err(OpenError::Missing(database.to_owned())),
        Err(source) if source.kind() == ErrorKind::NotFound => {
            let (folder, name) = (database.parent(), database.file_name());
            let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize();
            Ok(folder.map_err(failed)?.join(name.unwrap_or_default()))
        }
        Err(source) => Err(failed(source)),
    }
}

#[cfg(unix)]
fn refuse_other_names(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::MetadataExt as _;

    let failed = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let file = std::fs::metadata(path).map_err(failed)?;
    if file.is_file() && file.nlink() > 1 {
        return Err(OpenError::SeveralNames(path.to_owned()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_other_names(_path: &Path) -> Result<(), OpenError> {
    Ok(())
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r70_a_file_is_locked_whatever_name_it_is_opened_by() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("wow.db");
        std::fs::write(&database, "").unwrap();
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&database, &link).unwrap();
        let held = FileLock::take(&database).unwrap();
        let second = FileLock::take(&link);
        assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
        drop(held);
        FileLock::take(&link).unwrap();
    }

    #[test]
    fn r70_a_file_with_two_names_is_refused_by_either() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("wow.db");
        std::fs::write(&database, "").unwrap();
        let other = folder.path().join("other.db");
        std::fs::hard_link(&database, &other).unwrap();
        for name in [&database, &other] {
            let taken = FileLock::take(name);
            assert!(
                matches!(taken, Err(OpenError::SeveralNames(_))),
                "{taken:?}"
            );
        }
    }
}
