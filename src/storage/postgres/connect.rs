//! Connections to PostgreSQL, and their settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::sqlx::ConnectOptions as _;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr, SqlxPostgresConnector};

use super::super::error::OpenError;
use super::super::settings::Password;

/// What an operator sees in `pg_stat_activity`.
const APPLICATION: &str = "wow";

/// A database of a PostgreSQL server, and how it is connected to.
#[derive(Clone)]
pub(in crate::storage) struct PostgresServer {
    options: PgConnectOptions,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresServer")
            .field("host", &self.options.get_host())
            .field("database", &self.options.get_database())
            .finish_non_exhaustive()
    }
}

impl PostgresServer {
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
        let options = url.parse::<PgConnectOptions>();
        let mut options = options.map_err(|error| OpenError::Url(error.to_string()))?;
        if let Some(password) = password {
            options = options.password(password.expose());
        }
        // Each statement would be logged at INFO.
        options = options.disable_statement_logging();
        if options.get_application_name().is_none() {
            options = options.application_name(APPLICATION);
        }
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

    /// How writers and readers connect.
    pub(super) fn options(&self) -> PgConnectOptions {
        self.limited(self.statement_timeout).options([
            // A statement is planned once, for a log of any size: through the indexes, whatever
            // the tables' statistics said at that moment. Its keys come as one parameter,
            // of which a plan for one call knows no more.
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("jit", "off"),
        ])
    }

    /// The server's own time-outs.
    fn limited(&self, limit: Duration) -> PgConnectOptions {
        let limit = limit.as_millis().to_string();
        self.plain().options([
            ("statement_timeout", &*limit),
            ("lock_timeout", &*limit),
            ("idle_in_transaction_session_timeout", &*limit),
        ])
    }

    /// What holds for every connection.
    fn plain(&self) -> PgConnectOptions {
        self.options.clone().options([
            ("timezone", "UTC"),
            ("default_transaction_isolation", "read committed"),
            // A node that vanished must not hold its locks for hours.
            ("tcp_keepalives_idle", "15"),
            ("tcp_keepalives_interval", "5"),
            ("tcp_keepalives_count", "3"),
        ])
    }

    /// One connection, whose statements may take so long.
    pub(super) async fn pool(&self, limit: Option<Duration>) -> Result<DatabaseConnection, DbErr> {
        let options = limit.map_or_else(|| self.plain(), |limit| self.limited(limit));
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(self.connect_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_with(options)
            .await
            .map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))?;
        Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
    }
}
