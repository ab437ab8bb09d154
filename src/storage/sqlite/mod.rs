//! SQLite: the embedded default. One file, one node, one connection that writes.
//!
//! ```text
//! lock        one node for each file         statements  the SQL
//! connect     connections and pragmas        write       a batch in one transaction
//! fault       what its errors mean           read        answers to batched questions
//! ```

mod connect;
mod fault;
mod lock;
mod read;
mod statements;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sea_orm::{ConnectionTrait, DatabaseConnection, Value};
use tokio::sync::Mutex;
use wow_kernel::id::EpochMillis;
use wow_migrations::{SchemaState, migrate, schema_state};

use self::connect::{SqliteFile, path_of};
use self::lock::FileLock;
use self::read::SqliteSource;
use self::write::{SqliteWriter, statement};
use super::error::OpenError;
use super::leases::LeaseSource;
use super::meta::{self, Meta};
use super::node::Opened;
use super::observer::{StorageObserver, Unobserved};
use super::reads::Reads;
use super::settings::{Durability, StorageSettings};

/// How long a reader without a node waits for a connection, and for a lock.
const READ_ONLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a URL is one of SQLite's.
pub(super) fn accepts(url: &str) -> bool {
    url.starts_with("sqlite:")
}

/// Refuses a URL that names no file.
///
/// # Errors
/// [`OpenError::Url`].
pub(super) fn check_url(url: &str) -> Result<(), OpenError> {
    path_of(url).map(drop)
}

/// The file that a URL names; none where it is another database's.
pub(super) fn file_of(url: &str) -> Option<PathBuf> {
    accepts(url).then(|| path_of(url).ok()).flatten()
}

/// Opens a file for a node: locks it, creates it and its folder where they are missing, brings
/// its schema up to date, and checks that it is this node's.
///
/// # Errors
/// [`OpenError`].
pub(super) async fn open(
    settings: StorageSettings,
    observer: Arc<dyn StorageObserver>,
) -> Result<Opened, OpenError> {
    let file = SqliteFile {
        path: path_of(&settings.url)?,
        durability: settings.durability,
        connect_timeout: settings.connect_timeout,
        statement_timeout: settings.statement_timeout,
        observer,
    };
    let lock = lock(file.path.clone()).await?;
    let connection = file.writer().await?;
    if settings.migrate {
        migrate(&connection).await?;
    } else if let SchemaState::Pending(pending) = schema_state(&connection).await? {
        return Err(OpenError::SchemaBehind(pending.len()));
    }
    let wanted = Meta {
        partitions: settings.partitions,
        context: settings.context,
    };
    meta::settle(&connection, &wanted).await?;
    let newest_at = newest_time(&connection).await?;
    let readers = file.readers(settings.readers.max(1)).await?;
    let turn = Arc::new(Mutex::new(()));
    let leases = file.clone();
    let connect = move || {
        let file = leases.clone();
        let connect: BoxFuture<'static, _> = Box::pin(async move { file.writer().await });
        connect
    };
    let deadline = settings.statement_timeout;
    let writer = SqliteWriter::new(file, connection, newest_at, lock, Arc::clone(&turn));
    Ok(Opened {
        writers: vec![Box::new(writer)],
        reads: Arc::new(SqliteSource::reads(readers)),
        leases: LeaseSource {
            connect: Arc::new(connect),
            turn: Some(turn),
            deadline,
        },
    })
}

/// Opens a file only to read it, beside the node that writes it or without one.
///
/// # Errors
/// [`OpenError`].
pub(super) async fn open_read_only(
    url: &str,
) -> Result<(DatabaseConnection, Arc<dyn Reads>, Meta), OpenError> {
    let path = path_of(url)?;
    if !exists(path.clone()).await? {
        return Err(OpenError::Missing(path));
    }
    let file = SqliteFile {
        path,
        durability: Durability::Full,
        connect_timeout: READ_ONLY_TIMEOUT,
        statement_timeout: READ_ONLY_TIMEOUT,
        observer: Arc::new(Unobserved),
    };
    let connection = file.readers(2).await?;
    if let SchemaState::Pending(pending) = schema_state(&connection).await? {
        return Err(OpenError::SchemaBehind(pending.len()));
    }
    let meta = meta::read(&connection).await?;
    let meta = meta.ok_or_else(|| OpenError::Corrupt("no node has used it yet".to_owned()))?;
    let reads = Arc::new(SqliteSource::reads(connection.clone()));
    Ok((connection, reads, meta))
}

/// Creates the folder, and takes the lock.
async fn lock(path: PathBuf) -> Result<FileLock, OpenError> {
    blocking(move || {
        if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
            std::fs::create_dir_all(folder).map_err(|source| OpenError::File {
                path: folder.to_owned(),
                source,
            })?;
        }
        FileLock::take(&path)
    })
    .await
}

async fn exists(path: PathBuf) -> Result<bool, OpenError> {
    blocking(move || {
        path.try_exists()
            .map_err(|source| OpenError::File { path, source })
    })
    .await
}

/// Runs what blocks on the file system away from the runtime's own threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(OpenError::Corrupt(format!("opening it failed: {error}"))))
}

/// When the newest commit was taken; 0 in an empty log.
async fn newest_time(connection: &DatabaseConnection) -> Result<EpochMillis, OpenError> {
    let newest = statement(&statements::TEXTS.newest_time, [] as [Value; 0]);
    let row = connection.query_one_raw(newest).await?;
    let newest: Option<i64> = row
        .map(|row| row.try_get_by_index(0))
        .transpose()?
        .flatten();
    Ok(newest.unwrap_or_default())
}
