//! Storage for people: opened only to read, beside the node that writes it or without one.

use std::fmt;
use std::sync::Arc;

use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Statement, Value};
use wow_kernel::ports::StorageError;

use super::error::OpenError;
use super::meta::Meta;
use super::reads::Reads;
use super::sqlite;

/// A database that is only read: `wow log show`, `wow log verify`. It takes no lock, so a node
/// may be running.
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
    /// Opens the database that a URL names; creates nothing. Its I/O runs on the runtime on
    /// which this is called.
    ///
    /// # Errors
    /// [`OpenError`], above all [`OpenError::Missing`].
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        let (database, reads, meta) = sqlite::open_read_only(url).await?;
        Ok(Self {
            reads: Arc::new(reads),
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
    }

    /// The unique keys that the schema has and this database doesn't.
    pub(super) async fn missing_keys(&self) -> Result<Vec<&'static str>, StorageError> {
        let missing = wow_migrations::missing_keys(&self.database).await;
        missing.map_err(|error| StorageError::Unavailable(error.to_string()))
    }

    /// Runs a statement whose text serves every database; its parameters are `$1`, `$2`, ….
    pub(super) async fn query(
        &self,
        text: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, StorageError> {
        let backend = self.database.get_database_backend();
        let statement = Statement::from_sql_and_values(backend, text, values);
        let rows = self.database.query_all_raw(statement).await;
        rows.map_err(|error| StorageError::Unavailable(error.to_string()))
    }
}
