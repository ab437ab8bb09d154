//! Databases for one run each: a file below this folder, or a database of a server that is named
//! by the variables that the tests use.

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// Which database a bench runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
    MySql,
}

impl Engine {
    /// The engines that the command line names; SQLite where it names none.
    pub(crate) fn of_arguments() -> Vec<Self> {
        let named: Vec<_> = std::env::args()
            .filter_map(|argument| match argument.as_str() {
                "sqlite" => Some(Self::Sqlite),
                "postgres" => Some(Self::Postgres),
                "mysql" => Some(Self::MySql),
                _ => None,
            })
            .collect();
        if named.is_empty() {
            return vec![Self::Sqlite];
        }
        named
    }

    fn server(self) -> String {
        let variable = match self {
            Self::Postgres => "WOW_TEST_POSTGRES_URL",
            _ => "WOW_TEST_MYSQL_URL",
        };
        std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} names no server; `./test --servers` starts one"))
    }
}

/// A database that is gone when [`Scratch::remove`] was called.
pub(crate) struct Scratch {
    pub(crate) url: String,
    name: Option<(String, String)>,
    _folder: Option<TempDir>,
}

impl Scratch {
    pub(crate) async fn new(engine: Engine) -> Self {
        if engine == Engine::Sqlite {
            // Below this folder, for a system's folder for such things is often no disk.
            let folder = tempfile::tempdir_in(".").unwrap();
            return Self {
                url: format!("sqlite://{}", folder.path().join("wow.db").display()),
                name: None,
                _folder: Some(folder),
            };
        }
        let server = engine.server();
        let name = format!("wow_bench_{}", Uuid::now_v7().simple());
        run(&server, &format!("create database {name}")).await;
        let (base, _) = server.rsplit_once('/').unwrap();
        Self {
            url: format!("{base}/{name}"),
            name: Some((server, name)),
            _folder: None,
        }
    }

    pub(crate) async fn remove(self) {
        if let Some((server, name)) = &self.name {
            run(server, &format!("drop database {name}")).await;
        }
    }
}

async fn run(server: &str, statement: &str) {
    let connection = connect(server).await;
    connection.execute_unprepared(statement).await.unwrap();
    connection.close().await.unwrap();
}

/// One connection, as a writer has it.
pub(crate) async fn connect(url: &str) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .sqlx_logging(false);
    Database::connect(options).await.unwrap()
}
