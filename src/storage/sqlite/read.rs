//! SQLite's connections that read.

use async_trait::async_trait;
use sea_orm::{ConnectionTrait, DatabaseConnection, QueryResult, Value};
use wow_kernel::ports::StorageError;

use super::super::rows::Cells;
use super::super::sql::{Source, SqlReads, Texts};
use super::fault::classify;
use super::statements;
use super::write::statement;

/// A pool of connections that only read.
#[derive(Debug)]
pub(super) struct SqliteSource {
    connection: DatabaseConnection,
}

impl SqliteSource {
    /// The reading half of a file.
    pub(super) fn reads(connection: DatabaseConnection) -> SqlReads<Self> {
        SqlReads::new(Self { connection })
    }
}

#[async_trait]
impl Source for SqliteSource {
    fn texts(&self) -> &'static Texts {
        &statements::TEXTS
    }

    async fn rows(
        &self,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, StorageError> {
        let statement = statement(text, keys.map(Value::from));
        let rows = self.connection.query_all_raw(statement).await;
        rows.map_err(|error| classify(&error).into())
    }

    async fn damages(&self) -> Result<Vec<String>, StorageError> {
        let mut damages = Vec::new();
        for row in self.rows(&statements::INTEGRITY, None).await? {
            let text: String = Cells::new(&row).get()?;
            if text != "ok" {
                damages.push(text);
            }
        }
        Ok(damages)
    }

    async fn close(&self) {
        if let Err(error) = self.connection.close_by_ref().await {
            tracing::warn!(%error, "the readers didn't close cleanly");
        }
    }
}
