//! MySQL, version 8 or later, and MariaDB, 10.6 or later.
//!
//! ```text
//! connect     connections and their settings      statements  the SQL
//! fault       what its errors mean                write       a batch in one transaction
//! ```

mod connect;
mod fault;
mod statements;
mod write;

use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sqlx::{self, Connection as _, Error as DriverError};
use sea_orm::{DatabaseConnection, DbErr, QueryResult};
use wow_kernel::id::EpochMillis;

pub(in crate::storage) use self::connect::{MySqlServer, Session};
use super::batch::{Batch, Written};
use super::error::Fault;
use super::server::{CommitSent, Server, WriteFault};
use super::sql::Texts;

/// Whether a URL is one of MySQL's.
pub(super) fn accepts(url: &str) -> bool {
    url.starts_with("mysql://")
}

#[async_trait]
impl Server for MySqlServer {
    type Connection = Session;

    const TRY_LOCK: &'static str = statements::TRY_LOCK;

    const DAMAGES: &'static str = statements::DAMAGES;

    fn port(&self) -> u16 {
        self.remote_port()
    }

    async fn connect(&self) -> Result<Session, DriverError> {
        self.session().await
    }

    fn may_come_back(error: &DriverError) -> bool {
        fault::may_come_back(error)
    }

    async fn ping(session: &mut Session) -> Result<(), DriverError> {
        session.connection.ping().await
    }

    async fn close(session: Session) {
        if let Err(error) = session.connection.close().await {
            tracing::debug!(%error, "a connection didn't close cleanly");
        }
    }

    fn texts(session: &Session) -> &'static Texts {
        session.flavour.texts()
    }

    async fn query(
        session: &mut Session,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, DriverError> {
        let mut query = sqlx::query(text);
        if let Some(keys) = keys {
            query = query.bind(keys);
        }
        let rows = query.fetch_all(&mut session.connection).await?;
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }

    fn classify(error: &DriverError) -> Fault {
        fault::classify(error)
    }

    fn survives(error: &DriverError) -> bool {
        fault::survives(error)
    }

    async fn write(
        session: &mut Session,
        batch: &Batch<'_>,
        newest_at: EpochMillis,
        commit: &CommitSent,
    ) -> Result<Written, WriteFault> {
        write::write(session, batch, newest_at, commit).await
    }

    async fn database(&self, limit: Option<Duration>) -> Result<DatabaseConnection, DbErr> {
        self.pool(limit).await
    }
}
