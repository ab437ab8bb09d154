//! A database of each kind for one test alone, gone when it is dropped.
//!
//! The servers are those that `./test` starts, named in the environment. Each test makes a
//! database there with a name of its own, so that tests run beside each other.

use std::thread;

use sea_orm::{ConnectOptions, ConnectionTrait, Database as Connector, DatabaseConnection};
use tempfile::TempDir;
use uuid::Uuid;
use wow::storage::StorageSettings;

/// Where the PostgreSQL server is, for a user who may create databases.
pub(super) const POSTGRES: &str = "WOW_TEST_POSTGRES_URL";

/// Where the MySQL or MariaDB server is, likewise.
pub(super) const MYSQL: &str = "WOW_TEST_MYSQL_URL";

/// A database, and what removes it.
pub(crate) struct Database {
    url: String,
    _gone_with_it: GoneWithIt,
}

enum GoneWithIt {
    Folder { _folder: TempDir },
    Server { admin: String, name: String },
}

impl Database {
    /// A file.
    pub(super) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: super::support::url(folder.path()),
            _gone_with_it: GoneWithIt::Folder { _folder: folder },
        }
    }

    /// A database of the PostgreSQL server.
    pub(crate) async fn postgres() -> Self {
        Self::on_server(POSTGRES).await
    }

    /// A database of the MySQL or MariaDB server.
    pub(super) async fn mysql() -> Self {
        Self::on_server(MYSQL).await
    }

    async fn on_server(variable: &str) -> Self {
        let Ok(admin) = std::env::var(variable) else {
            panic!("{variable} is not set; run ./test, which starts servers and sets it");
        };
        let name = format!("wow_test_{}", Uuid::now_v7().simple());
        let server = connect(&admin).await;
        let mut statements = vec![format!("create database {name}")];
        if admin.starts_with("postgres") {
            // The machine doesn't lose its power in a test, and a sync takes long.
            statements.push(format!(
                "alter database {name} set synchronous_commit = off"
            ));
        }
        for statement in statements {
            server.execute_unprepared(&statement).await.unwrap();
        }
        server.close().await.unwrap();
        let (server, _) = admin.rsplit_once('/').unwrap();
        Self {
            url: format!("{server}/{name}"),
            _gone_with_it: GoneWithIt::Server {
                admin: admin.clone(),
                name,
            },
        }
    }

    /// A fresh one of the same kind.
    pub(super) async fn another(&self) -> Self {
        if self.url.starts_with("sqlite") {
            Self::sqlite().await
        } else if self.url.starts_with("mysql") {
            Self::mysql().await
        } else {
            Self::postgres().await
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How a test opens it: with one writer, whose batches it can foresee.
    pub(super) fn settings(&self) -> StorageSettings {
        StorageSettings {
            writers: 1,
            ..super::support::settings_of(&self.url)
        }
    }

    /// A connection of the test's own.
    pub(super) async fn connect(&self) -> DatabaseConnection {
        connect(&self.url).await
    }

    /// Runs a statement of the test's own; answers with how many rows it changed.
    pub(super) async fn run(&self, sql: &str) -> u64 {
        run(&self.url, sql).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let GoneWithIt::Server { admin, name } = &self._gone_with_it else {
            return;
        };
        let force = if admin.starts_with("postgres") {
            " with (force)"
        } else {
            ""
        };
        let sql = format!("drop database {name}{force}");
        let admin = admin.clone();
        // A runtime can't be waited for on a thread of one.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(run(&admin, &sql));
        });
        if dropped.join().is_err() {
            eprintln!("a test's database is left behind");
        }
    }
}

async fn connect(url: &str) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false);
    Connector::connect(options).await.unwrap()
}

/// Runs a statement on a database; answers with how many rows it changed.
pub(super) async fn run(url: &str, sql: &str) -> u64 {
    let connection = connect(url).await;
    let done = connection.execute_unprepared(sql).await.unwrap();
    connection.close().await.unwrap();
    done.rows_affected()
}

/// Makes a test of each function for each kind of database.
macro_rules! on_every_database {
    ($($test:ident),* $(,)?) => {
        mod on_sqlite {
            use super::super::databases::Database;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $test() {
                    super::$test(Database::sqlite().await).await;
                }
            )*
        }
        on_every_server!($($test),*);
    };
}

/// Makes a test of each function for each kind of server.
macro_rules! on_every_server {
    ($($test:ident),* $(,)?) => {
        mod on_postgres {
            use super::super::databases::Database;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $test() {
                    super::$test(Database::postgres().await).await;
                }
            )*
        }
        mod on_mysql {
            use super::super::databases::Database;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $test() {
                    super::$test(Database::mysql().await).await;
                }
            )*
        }
    };
}

pub(super) use {on_every_database, on_every_server};
