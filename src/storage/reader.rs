//! Storage for people: opened only to read, beside the node that writes it or without one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Value};
use wow_kernel::ports::StorageError;

use super::error::OpenError;
use super::meta::Meta;
use super::mysql::{self, MySqlServer};
use super::postgres::{self, PostgresServer};
use super::reads::Reads;
use super::server::{self, Patience};
use super::settings::Password;
use super::sql::numbered;
use super::sqlite;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a page may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A database that is only read: `wow log`, `wow members`, `wow partitions`. It takes no lock, so
/// a node may be running.
pub struct StorageReader {
    pub(super) reads: Arc<dyn Reads>,
    meta: Meta,
    database: DatabaseConnection,
}

impl fmt::Debug for StorageReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageReader")
            .field("meta", &self.meta)
            .finish_non_exhaustive()
    }
}

impl StorageReader {
    /// Opens the database that a URL names; creates nothing, and waits for no server that is
    /// away. A password that is given counts instead of the URL's. Its I/O runs on the runtime on
    /// which this is called.
    ///
    /// # Errors
    /// [`OpenError`], above all [`OpenError::Missing`].
    pub async fn open(url: &str, password: Option<&Password>) -> Result<Self, OpenError> {
        let patience = Patience::new(CONNECT_TIMEOUT, STATEMENT_TIMEOUT);
        let (database, reads, meta) = if sqlite::accepts(url) {
            sqlite::open_read_only(url).await?
        } else if postgres::accepts(url) {
            let server = PostgresServer::new(url, password, CONNECT_TIMEOUT, STATEMENT_TIMEOUT)?;
            server::open_read_only(server, patience).await?
        } else if mysql::accepts(url) {
            let server = MySqlServer::new(url, password, CONNECT_TIMEOUT, STATEMENT_TIMEOUT)?;
            server::open_read_only(server, patience).await?
        } else {
            return Err(OpenError::unknown_scheme(url));
        };
        Ok(Self {
            reads,
            meta,
            database,
        })
    }

    /// What the database says of itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Ends its connections.
    pub async fn close(&self) {
        self.reads.close().await;
        if let Err(error) = self.database.close_by_ref().await {
            tracing::warn!(%error, "a connection didn't close cleanly");
        }
    }

    pub(super) fn database(&self) -> &DatabaseConnection {
        &self.database
    }

    /// The unique keys that the schema has and this database doesn't.
    pub(super) async fn missing_keys(&self) -> Result<Vec<&'static str>, StorageError> {
        let missing = wow_migrations::missing_keys(&self.database).await;
        missing.map_err(|error| StorageError::Unavailable(error.to_string()))
    }

    /// Runs a statement whose text serves every database (`sql::numbered`).
    pub(super) async fn query(
        &self,
        text: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, StorageError> {
        let backend = self.database.get_database_backend();
        let statement = numbered(backend, text, values);
        let rows = self.database.query_all_raw(statement).await;
        rows.map_err(|error| StorageError::Unavailable(error.to_string()))
    }
}
