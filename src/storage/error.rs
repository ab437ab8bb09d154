//! How a database fails, and what that means: to the one who opens it, to a batch, to a caller.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use sea_orm::DbErr;
use wow_kernel::ports::{AppendError, StorageError};
use wow_migrations::SchemaError;

/// Why storage can't be opened. The texts tell an operator what to do; none carries a secret.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is none, or has parts that this backend doesn't take.
    #[error("storage.url can't be used: {0}")]
    Url(String),
    /// A log needs a partition.
    #[error("log.partitions is 0; it has to be at least 1")]
    NoPartitions,
    /// Another process has this file open.
    #[error(
        "{} is in use by another node{}; one file serves one node: stop that one, or use another file",
        .path.display(),
        .holder.as_ref().map_or(String::new(), |holder| format!(" (process {holder})"))
    )]
    InUse {
        /// The database file.
        path: PathBuf,
        /// The process that holds it, where it could be read.
        holder: Option<String>,
    },
    /// The file has other names, by which a second node could open it unnoticed.
    #[error("{} has more than one name (hard links); keep one, and open it by that", .0.display())]
    SeveralNames(PathBuf),
    /// There is no such file, where it must not be created.
    #[error("there is no database at {}", .0.display())]
    Missing(PathBuf),
    /// The file system refuses.
    #[error("{} can't be opened: {source}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The schema is behind, and storage was told not to migrate.
    #[error("the database's schema is behind by {0} migrations; run `wow migrate`")]
    SchemaBehind(usize),
    /// The database was away, and its node was told to stop.
    #[error("the database is away, and the wait for it was ended")]
    GivenUp,
    /// Others have held the lock of the schema all the time.
    #[error("another process has been changing the schema for {0:?}; try again when it is done")]
    SchemaLocked(Duration),
    /// The schema is newer than the binary, or couldn't be migrated.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The partition count is fixed at the first start.
    #[error(
        "the log was created with {stored} partitions, and log.partitions is {configured}: \
         the count can't change once there is a log; set it to {stored}"
    )]
    PartitionCount {
        /// What the database says.
        stored: u32,
        /// What the settings say.
        configured: u32,
    },
    /// The database belongs to another service.
    #[error("the database belongs to the context '{stored}', and context.name is '{configured}'")]
    Context {
        /// What the database says.
        stored: String,
        /// What the settings say.
        configured: String,
    },
    /// What the database says of itself makes no sense.
    #[error("the database can't be used: {0}")]
    Corrupt(String),
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] DbErr),
}

impl OpenError {
    /// For a URL whose scheme is no database's; its rest may hold a password.
    pub(super) fn unknown_scheme(url: &str) -> Self {
        let scheme = url.split(':').next().unwrap_or_default();
        Self::Url(format!(
            "'{scheme}' is no database this binary knows; it knows sqlite, postgres and mysql"
        ))
    }
}

/// A unique key of the log (R44).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UniqueKey {
    /// (tenant, type, id, version).
    Version,
    /// (tenant, type, request id).
    Request,
}

/// What an error of the database means for the statement that met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A row has this key already.
    Taken(UniqueKey),
    /// Nothing was done, and later it may be.
    Unavailable(String),
    /// The statement is refused whenever it comes.
    Refused(String),
    /// What is stored can't be read.
    Corrupt(String),
}

impl From<Fault> for StorageError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Corrupt(reason) => Self::Corrupt(reason),
            Fault::Unavailable(reason) | Fault::Refused(reason) => Self::Unavailable(reason),
            Fault::Taken(_) => Self::Unavailable("a key is taken".to_owned()),
        }
    }
}

/// Why a batch is not in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BatchFault {
    /// A unique key is taken: one entry is at fault, and the rest may go in without it.
    Taken(UniqueKey),
    /// Some entry is refused whenever it comes.
    Refused(String),
    /// Nothing was done; not one of its entries is in the database.
    Unavailable(String),
    /// It failed when it was being committed: all of it may be in the database (R54).
    Unknown(String),
}

impl From<Fault> for BatchFault {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Taken(key) => Self::Taken(key),
            Fault::Refused(reason) => Self::Refused(reason),
            Fault::Unavailable(reason) | Fault::Corrupt(reason) => Self::Unavailable(reason),
        }
    }
}

impl BatchFault {
    /// What it means to the caller of an append.
    pub(super) fn to_append_error(&self) -> AppendError {
        match self {
            Self::Taken(UniqueKey::Version) => AppendError::VersionConflict,
            Self::Taken(UniqueKey::Request) => AppendError::DuplicateRequest,
            Self::Refused(reason) => AppendError::Refused(reason.clone()),
            Self::Unavailable(reason) => AppendError::Unavailable(reason.clone()),
            Self::Unknown(reason) => AppendError::OutcomeUnknown(reason.clone()),
        }
    }

    /// What it means to the caller of an idempotent write, for whom "unknown" means "try again".
    pub(super) fn to_storage_error(&self) -> StorageError {
        StorageError::Unavailable(match self {
            Self::Taken(_) => "a key is taken".to_owned(),
            Self::Refused(reason) | Self::Unavailable(reason) | Self::Unknown(reason) => {
                reason.clone()
            }
        })
    }
}
