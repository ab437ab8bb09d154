//! SQLite: one immediate transaction a batch.

use std::collections::HashMap;
use std::path::PathBuf;

use async_trait::async_trait;
use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, Value,
};
use wow::storage::Durability;

use super::Batch;

pub(super) struct Sqlite {
    connection: DatabaseConnection,
    /// By the number of rows.
    inserts: HashMap<usize, String>,
}

impl Sqlite {
    pub(super) fn new(connection: DatabaseConnection) -> Self {
        Self {
            connection,
            inserts: HashMap::new(),
        }
    }
}

pub(super) async fn connect(path: PathBuf, durability: Durability) -> DatabaseConnection {
    let synchronous = match durability {
        Durability::Full => SqliteSynchronous::Full,
        Durability::Normal => SqliteSynchronous::Normal,
    };
    let mut options = ConnectOptions::new("sqlite:");
    options
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .sqlx_logging(false)
        .map_sqlx_sqlite_opts(move |options| {
            options
                .filename(&path)
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(synchronous)
                .pragma("wal_autocheckpoint", "4000")
                .pragma("cache_size", "-65536")
        });
    Database::connect(options).await.unwrap()
}

#[async_trait]
impl super::Database for Sqlite {
    async fn write(&mut self, batch: &Batch) {
        let rows = batch.commits.len();
        let insert = self
            .inserts
            .entry(rows)
            .or_insert_with(|| super::insert(rows));
        let mut values = Vec::new();
        for (commit, position) in &batch.commits {
            super::push(&mut values, commit, *position);
        }
        let immediate = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let transaction = self.connection.begin_with_options(immediate).await.unwrap();
        let raise = Statement::from_sql_and_values(
            DbBackend::Sqlite,
            "update log_partition set head = q.value ->> 1 from json_each($1) as q \
             where log_partition.partition_no = q.value ->> 0",
            [Value::from(serde_json::to_string(&batch.heads).unwrap())],
        );
        transaction.execute_raw(raise).await.unwrap();
        let insert = Statement::from_sql_and_values(DbBackend::Sqlite, insert.as_str(), values);
        transaction.execute_raw(insert).await.unwrap();
        transaction.commit().await.unwrap();
    }

    async fn close(self) {
        self.connection.close().await.unwrap();
    }
}
