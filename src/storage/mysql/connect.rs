//! Connections to MySQL or MariaDB, and their settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sea_orm::sqlx::{
    self, AssertSqlSafe, ConnectOptions as _, Connection as _, Error as DriverError, Executor as _,
    MySqlConnection,
};
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr, SqlxMySqlConnector};

use super::super::error::OpenError;
use super::super::settings::Password;
use super::statements::Flavour;

/// Statements that a connection keeps prepared; there are a few dozen.
const STATEMENTS_KEPT: usize = 200;

/// What is committed is seen by the next statement, and no more is locked than is written.
const ISOLATION: &str = "set session transaction isolation level read committed";

/// A database of a server, and how it is connected to.
#[derive(Clone)]
pub(in crate::storage) struct MySqlServer {
    options: MySqlConnectOptions,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

/// A connection, and which of the two is at its other end.
pub(in crate::storage) struct Session {
    pub(in crate::storage) connection: MySqlConnection,
    pub(super) flavour: Flavour,
}

impl fmt::Debug for MySqlServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlServer")
            .field("host", &self.options.get_host())
            .field("database", &self.options.get_database())
            .finish_non_exhaustive()
    }
}

impl MySqlServer {
    /// The database that a URL names; a password that is given counts instead of the URL's.
    ///
    /// # Errors
    /// [`OpenError::Url`].
    pub(in crate::storage) fn new(
        url: &str,
        password: Option<&Password>,
        connect_timeout: Duration,
        statement_timeout: Duration,
    ) -> Result<Self, OpenError> {
        let options = url.parse::<MySqlConnectOptions>();
        let mut options = options.map_err(|error| OpenError::Url(error.to_string()))?;
        if options.get_database().is_none() {
            let reason = "it names no database: write mysql://user@host/database";
            return Err(OpenError::Url(reason.to_owned()));
        }
        if let Some(password) = password {
            options = options.password(password.expose());
        }
        let options = options
            .charset("utf8mb4")
            .statement_cache_capacity(STATEMENTS_KEPT)
            // Each statement would be logged at INFO.
            .disable_statement_logging();
        Ok(Self {
            options,
            connect_timeout,
            statement_timeout,
        })
    }

    /// Where the server listens.
    pub(super) fn remote_port(&self) -> u16 {
        self.options.get_port()
    }

    /// A connection for writers and readers.
    pub(super) async fn session(&self) -> Result<Session, DriverError> {
        let mut connection = MySqlConnection::connect_with(&self.options).await?;
        let version: String = sqlx::query_scalar("select version()")
            .fetch_one(&mut connection)
            .await?;
        let flavour = Flavour::of(&version);
        let seconds = self.statement_timeout.as_secs().max(1);
        let limit = match flavour {
            Flavour::MariaDb => {
                format!("max_statement_time = {seconds}, idle_transaction_timeout = {seconds}")
            }
            // Of reads alone; writes are bounded by their locks, and by us.
            Flavour::MySql => format!("max_execution_time = {}", seconds * 1000),
        };
        connection.execute(ISOLATION).await?;
        connection
            .execute(AssertSqlSafe(format!(
                // A row that doesn't fit is refused and not cut; the end of a message names the key.
                "set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', \
                 lc_messages = 'en_US', innodb_lock_wait_timeout = {seconds}, \
                 lock_wait_timeout = {seconds}, {limit}"
            )))
            .await?;
        Ok(Session {
            connection,
            flavour,
        })
    }

    /// One connection, whose statements may wait so long for others.
    pub(super) async fn pool(&self, limit: Option<Duration>) -> Result<DatabaseConnection, DbErr> {
        let limits = limit.map(|limit| {
            let seconds = limit.as_secs().max(1);
            format!(
                "set session innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}"
            )
        });
        let pool = MySqlPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.connect_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let limits = limits.clone();
                Box::pin(async move {
                    connection.execute(ISOLATION).await?;
                    if let Some(limits) = limits {
                        connection.execute(AssertSqlSafe(limits)).await?;
                    }
                    Ok(())
                })
            })
            .connect_with(self.options.clone())
            .await
            .map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))?;
        Ok(SqlxMySqlConnector::from_sqlx_mysql_pool(pool))
    }
}
