//! Connections to a SQLite file, and the settings that make them fast and durable.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbErr};

use super::super::error::OpenError;
use super::super::observer::StorageObserver;
use super::super::settings::Durability;

/// Pages in the WAL at which a commit copies them into the file. A page that many commits touch,
/// as the ends of the indexes are, is copied once: 4 000 pages measured 1.2 times as fast as
/// SQLite's 1 000, and more gained little.
const WAL_CHECKPOINT_PAGES: &str = "4000";

/// Bytes to which the WAL's file is cut back once all of it is copied.
const WAL_BYTES_KEPT: &str = "67108864";

/// The writer's page cache in KiB (negative, as SQLite wants it): the hot ends of the indexes.
const WRITER_CACHE: &str = "-65536";

/// The page cache of each reader in KiB.
const READER_CACHE: &str = "-16384";

/// A database file, and how it is opened.
#[derive(Debug, Clone)]
pub(super) struct SqliteFile {
    pub(super) path: PathBuf,
    pub(super) durability: Durability,
    pub(super) connect_timeout: Duration,
    pub(super) statement_timeout: Duration,
    pub(super) observer: Arc<dyn StorageObserver>,
}

impl SqliteFile {
    /// The one connection that writes; creates the file where it is missing.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub(super) async fn writer(&self) -> Result<DatabaseConnection, DbErr> {
        let synchronous = match self.durability {
            Durability::Full => SqliteSynchronous::Full,
            Durability::Normal => SqliteSynchronous::Normal,
        };
        self.connect(1, move |options| {
            options
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(synchronous)
                .pragma("wal_autocheckpoint", WAL_CHECKPOINT_PAGES)
                .pragma("journal_size_limit", WAL_BYTES_KEPT)
                .pragma("cache_size", WRITER_CACHE)
        })
        .await
    }

    /// Connections that only read. In WAL mode they wait for nobody, and nobody for them.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub(super) async fn readers(&self, count: u32) -> Result<DatabaseConnection, DbErr> {
        self.connect(count, |options| {
            options.read_only(true).pragma("cache_size", READER_CACHE)
        })
        .await
    }

    async fn connect(
        &self,
        count: u32,
        with: impl Fn(SqliteConnectOptions) -> SqliteConnectOptions + Send + Sync + 'static,
    ) -> Result<DatabaseConnection, DbErr> {
        let (path, busy_timeout) = (self.path.clone(), self.statement_timeout);
        let mut options = ConnectOptions::new("sqlite:");
        options
            .max_connections(count)
            .min_connections(1)
            .acquire_timeout(self.connect_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            // A ping tells nothing of a file; a failed connection is replaced.
            .test_before_acquire(false)
            // Each statement would be logged at INFO.
            .sqlx_logging(false)
            .map_sqlx_sqlite_opts(move |options| {
                // The path is set here and not in the URL, where '?' and '%' mean something.
                with(options.filename(&path).busy_timeout(busy_timeout))
            });
        let mut connection = Database::connect(options).await?;
        let observer = Arc::clone(&self.observer);
        connection.set_metric_callback(move |info| observer.statement(info.elapsed));
        Ok(connection)
    }
}

/// The file that a URL names: `sqlite://relative/path` or `sqlite:///absolute/path`.
///
/// # Errors
/// [`OpenError::Url`].
pub(super) fn path_of(url: &str) -> Result<PathBuf, OpenError> {
    let path = url
        .strip_prefix("sqlite://")
        .or_else(|| url.strip_prefix("sqlite:"))
        .ok_or_else(|| OpenError::Url("it doesn't begin with sqlite://".to_owned()))?;
    if path.is_empty() || path.ends_with('/') {
        return Err(OpenError::Url(
            "it names no file: write sqlite://data/wow.db".to_owned(),
        ));
    }
    if path.contains(":memory:") {
        let reason = "SQLite in memory isn't supported: write memory: for Wow's own";
        return Err(OpenError::Url(reason.to_owned()));
    }
    if path.contains('?') {
        return Err(OpenError::Url(
            "a sqlite URL takes no parameters".to_owned(),
        ));
    }
    Ok(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_and_nothing_else() {
        for (url, path) in [
            ("sqlite://data/wow.db", "data/wow.db"),
            ("sqlite:///var/lib/wow.db", "/var/lib/wow.db"),
            ("sqlite:wow.db", "wow.db"),
            ("sqlite://a b%20c.db", "a b%20c.db"),
        ] {
            assert_eq!(path_of(url).ok(), Some(PathBuf::from(path)), "{url}");
        }
        for url in [
            "sqlite://",
            "sqlite://x/",
            "sqlite::memory:",
            "sqlite://x?mode=ro",
            "mysql://x",
        ] {
            assert!(matches!(path_of(url), Err(OpenError::Url(_))), "{url}");
        }
    }
}
