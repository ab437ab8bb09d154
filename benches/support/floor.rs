//! The floor: a bare batching writer.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use sea_orm::{
    ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, Value,
};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use wow::storage::Durability;
use wow_kernel::commit::Commit;
use wow_migrations::migrate;
use wow_migrations::names::commit_log;

const BATCH: usize = 512;

/// None ends the task.
type Appended = Option<(Arc<Commit>, oneshot::Sender<u64>)>;

/// A queue, a connection, and a task.
pub(crate) struct Floor {
    queue: mpsc::Sender<Appended>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Floor {
    /// Opens a file with the pragmas that the node uses.
    pub(crate) async fn open(path: &Path, durability: Durability, partitions: u32) -> Self {
        let connection = connect(path.to_owned(), durability).await;
        migrate(&connection).await.unwrap();
        for partition in 0..partitions {
            let sql = format!("insert into log_partition values ({partition}, 0)");
            connection.execute_unprepared(&sql).await.unwrap();
        }
        let (queue, appended) = mpsc::channel(8192);
        let task = tokio::spawn(write(connection, appended));
        Self {
            queue,
            task: Mutex::new(Some(task)),
        }
    }

    /// Appends, and waits for the commit.
    pub(crate) async fn append(&self, commit: Arc<Commit>) -> u64 {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send(Some((commit, reply))).unwrap();
        answer.await.unwrap()
    }

    /// Ends the task.
    pub(crate) async fn close(&self) {
        self.queue.send(None).await.unwrap();
        if let Some(task) = self.task.lock().await.take() {
            task.await.unwrap();
        }
    }
}

async fn connect(path: PathBuf, durability: Durability) -> DatabaseConnection {
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

async fn write(connection: DatabaseConnection, mut queue: mpsc::Receiver<Appended>) {
    let mut heads: BTreeMap<u32, u64> = BTreeMap::new();
    let mut inserts: HashMap<usize, String> = HashMap::new();
    let mut taken = Vec::new();
    while queue.recv_many(&mut taken, BATCH).await > 0 {
        let ended = taken.iter().any(Option::is_none);
        let batch: Vec<_> = taken.drain(..).flatten().collect();
        if ended {
            break;
        }
        let mut raised: BTreeMap<u32, u64> = BTreeMap::new();
        let mut values = Vec::with_capacity(batch.len() * commit_log::COLUMNS.len());
        let mut positions = Vec::with_capacity(batch.len());
        for (commit, _) in &batch {
            let head = heads.entry(commit.partition.0).or_default();
            *head += 1;
            raised.insert(commit.partition.0, *head);
            positions.push(*head);
            push(&mut values, commit, *head);
        }
        let insert = inserts
            .entry(batch.len())
            .or_insert_with(|| insert(batch.len()));
        let transaction = connection
            .begin_with_options(TransactionOptions {
                sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
                ..TransactionOptions::default()
            })
            .await
            .unwrap();
        let raised: Vec<_> = raised.into_iter().collect();
        let raise = Statement::from_sql_and_values(
            DbBackend::Sqlite,
            "update log_partition set head = q.value ->> 1 from json_each($1) as q \
             where log_partition.partition_no = q.value ->> 0",
            [Value::from(serde_json::to_string(&raised).unwrap())],
        );
        transaction.execute_raw(raise).await.unwrap();
        let insert = Statement::from_sql_and_values(DbBackend::Sqlite, insert.as_str(), values);
        transaction.execute_raw(insert).await.unwrap();
        transaction.commit().await.unwrap();
        for ((_, reply), position) in batch.into_iter().zip(positions) {
            let _ = reply.send(position);
        }
    }
    connection.close().await.unwrap();
}

fn insert(rows: usize) -> String {
    let columns = commit_log::COLUMNS;
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    format!(
        "insert into commit_log values {}",
        vec![row; rows].join(",")
    )
}

fn push(values: &mut Vec<Value>, commit: &Commit, position: u64) {
    values.extend([
        Value::from(commit.partition.0),
        Value::from(position),
        Value::from(commit.key.tenant.as_str()),
        Value::from(commit.key.aggregate_type.as_str()),
        Value::from(commit.key.id.as_str()),
        Value::from(commit.version),
        Value::from(commit.request_id.as_str()),
        Value::from(commit.command_id.to_string()),
        Value::from(&*commit.command_type),
        Value::from(&*commit.principal),
        Value::from(commit.owner.as_str()),
        Value::from(commit.space.as_str()),
        Value::from(commit.origin.as_str()),
        Value::from(serde_json::to_string(&commit.events).unwrap()),
        Value::String(None),
        Value::from(serde_json::to_string(&commit.headers).unwrap()),
        Value::from(0_i64),
    ]);
}
