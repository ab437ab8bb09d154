//! The tables that operators' queries read, by SQL of the tests' own.

use std::collections::BTreeMap;
use std::path::Path;

use sea_orm::{
    ConnectOptions, ConnectionTrait, Database as SeaOrm, DatabaseConnection, DatabaseTransaction,
    QueryResult, SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
    TryGetable,
};
use serde_json::Value;

/// A row of `commit_log`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogRow {
    pub(crate) partition: i64,
    pub(crate) position: i64,
    pub(crate) key: Key,
    pub(crate) version: i64,
    pub(crate) request_id: String,
    pub(crate) command_id: String,
    pub(crate) command_type: String,
    /// The events as the row holds them: an array of `{name, revision, body}`.
    pub(crate) events: Value,
}

/// Which aggregate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) tenant: String,
    pub(crate) aggregate_type: String,
    pub(crate) id: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.tenant, self.aggregate_type, self.id)
    }
}

/// What the log's tables hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Log {
    /// Every commit, by partition and position.
    pub(crate) rows: Vec<LogRow>,
    /// The head of each partition.
    pub(crate) heads: BTreeMap<i64, i64>,
    /// The version that each snapshot holds.
    pub(crate) snapshots: BTreeMap<Key, i64>,
}

/// A node's database, beside the node or after it.
#[derive(Debug)]
pub(crate) struct Database(DatabaseConnection);

impl Database {
    pub(crate) async fn open(file: &Path) -> Self {
        let file = file.to_owned();
        let mut options = ConnectOptions::new("sqlite:");
        options
            .max_connections(1)
            .sqlx_logging(false)
            .map_sqlx_sqlite_opts(move |options| options.filename(&file));
        Self(SeaOrm::connect(options).await.unwrap())
    }

    /// A database of a server.
    pub(crate) async fn open_url(url: &str) -> Self {
        let mut options = ConnectOptions::new(url);
        options.max_connections(1).sqlx_logging(false);
        Self(SeaOrm::connect(options).await.unwrap())
    }

    async fn query(&self, sql: &str) -> Vec<QueryResult> {
        let statement = Statement::from_string(self.0.get_database_backend(), sql);
        self.0.query_all_raw(statement).await.unwrap()
    }

    /// How many commits there are.
    pub(crate) async fn commits(&self) -> i64 {
        cell(&self.query("select count(*) from commit_log").await[0], 0)
    }

    /// The log whole.
    pub(crate) async fn log(&self) -> Log {
        let rows = self
            .query(
                "select cast(partition_no as bigint), position, tenant_id, aggregate_type, aggregate_id, version, \
                 request_id, command_id, command_type, events \
                 from commit_log order by partition_no, position",
            )
            .await;
        let heads = self
            .query("select cast(partition_no as bigint), head from log_partition")
            .await;
        let snapshots = self
            .query("select tenant_id, aggregate_type, aggregate_id, version from snapshot")
            .await;
        Log {
            rows: rows.iter().map(log_row).collect(),
            heads: heads
                .iter()
                .map(|row| (cell(row, 0), cell(row, 1)))
                .collect(),
            snapshots: snapshots
                .iter()
                .map(|row| (key(row, 0), cell(row, 3)))
                .collect(),
        }
    }

    /// Keeps every other connection from writing until it is dropped or rolled back.
    pub(crate) async fn lock_for_writing(&self) -> DatabaseTransaction {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        self.0.begin_with_options(options).await.unwrap()
    }

    pub(crate) async fn close(self) {
        self.0.close().await.unwrap();
    }
}

fn cell<T: TryGetable>(row: &QueryResult, index: usize) -> T {
    row.try_get_by_index(index).unwrap()
}

fn key(row: &QueryResult, first: usize) -> Key {
    Key {
        tenant: cell(row, first),
        aggregate_type: cell(row, first + 1),
        id: cell(row, first + 2),
    }
}

fn log_row(row: &QueryResult) -> LogRow {
    LogRow {
        partition: cell(row, 0),
        position: cell(row, 1),
        key: key(row, 2),
        version: cell(row, 5),
        request_id: cell(row, 6),
        command_id: cell(row, 7),
        command_type: cell(row, 8),
        events: serde_json::from_str(&cell::<String>(row, 9)).unwrap(),
    }
}
