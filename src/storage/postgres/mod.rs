//! PostgreSQL, version 15 or later.
//!
//! ```text
//! connect     connections and their settings      statements  the SQL
//! fault       what its errors mean                write       a batch in one statement
//! ```

mod connect;
mod fault;
mod statements;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sqlx::{self, Connection as _, Error as DriverError, PgConnection};
use sea_orm::{DatabaseConnection, DbErr, QueryResult};
use wow_kernel::id::EpochMillis;

pub(in crate::storage) use self::connect::PostgresServer;
use super::batch::{Batch, Written};
use super::error::Fault;
use super::server::{CommitSent, Server, WriteFault};
use super::sql::Texts;

/// Whether a URL is one of PostgreSQL's.
pub(super) fn accepts(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

#[async_trait]
impl Server for PostgresServer {
    type Connection = PgConnection;

    const TRY_LOCK: &'static str = statements::TRY_LOCK;

    const DAMAGES: &'static str = statements::DAMAGES;

    fn port(&self) -> u16 {
        self.remote_port()
    }

    async fn connect(&self) -> Result<PgConnection, DriverError> {
        PgConnection::connect_with(&self.options()).await
    }

    fn may_come_back(error: &DriverError) -> bool {
        fault::may_come_back(error)
    }

    async fn ping(connection: &mut PgConnection) -> Result<(), DriverError> {
        connection.ping().await
    }

    async fn close(connection: PgConnection) {
        if let Err(error) = connection.close().await {
            tracing::debug!(%error, "a connection didn't close cleanly");
        }
    }

    fn texts(_connection: &PgConnection) -> &'static Texts {
        &statements::TEXTS
    }

    async fn query(
        connection: &mut PgConnection,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, DriverError> {
        let mut query = sqlx::query(text);
        if let Some(keys) = keys {
            query = query.bind(keys);
        }
        let rows = query.fetch_all(connection).await?;
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }

    fn classify(error: &DriverError) -> Fault {
        fault::classify(error)
    }

    fn survives(error: &DriverError) -> bool {
        fault::survives(error)
    }

    async fn write(
        connection: &mut PgConnection,
        batch: &Batch<'_>,
        newest_at: EpochMillis,
        commit: &CommitSent,
    ) -> Result<Written, WriteFault> {
        write::write(connection, batch, newest_at, commit).await
    }

    async fn database(&self, limit: Option<Duration>) -> Result<DatabaseConnection, DbErr> {
        self.pool(limit).await
    }
}
