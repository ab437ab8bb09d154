//! One node for each file: an exclusive lock that the operating system holds for the process.
//!
//! SQLite itself lets several processes write one file. Two nodes on it would both believe that
//! they own every partition, and each would miss what the other commits, so the second is
//! refused (R70). The lock is on a file beside the database, because SQLite's own locks and a
//! lock of ours on the same file would get in each other's way. It goes with the process, however
//! that ends; the file stays, since removing it would let two processes lock two files of one name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
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
        let path = lock_path(database);
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

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
