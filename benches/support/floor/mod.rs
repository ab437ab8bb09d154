//! The floor: the least that could be called group commit.
//!
//! A queue, one connection of the same driver as the node's, one transaction a batch with the
//! same rows, heads and indexes, and a reply for each entry. It can't fail, look anything up, or
//! tell anybody what went wrong.

mod mysql;
mod postgres;
mod sqlite;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use sea_orm::{ConnectionTrait, DatabaseConnection, Value};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use wow::storage::Durability;
use wow_kernel::commit::Commit;
use wow_migrations::migrate;
use wow_migrations::names::commit_log;

use super::database::{Engine, connect};

const BATCH: usize = 512;

/// None ends the task.
type Appended = Option<(Arc<Commit>, oneshot::Sender<u64>)>;

/// What is written in one transaction.
struct Batch {
    /// The partitions it writes, with their new heads.
    heads: Vec<(u32, u64)>,
    /// The commits, with their positions.
    commits: Vec<(Arc<Commit>, u64)>,
}

/// A database that writes batches on one connection.
#[async_trait]
trait Database: Send + 'static {
    async fn write(&mut self, batch: &Batch);
    async fn close(self);
}

/// A queue, a connection, and a task.
pub(crate) struct Floor {
    queue: mpsc::Sender<Appended>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Floor {
    /// On a SQLite file, with the pragmas that the node uses.
    pub(crate) async fn sqlite(path: &Path, durability: Durability, partitions: u32) -> Self {
        let connection = sqlite::connect(path.to_owned(), durability).await;
        prepare(&connection, partitions).await;
        Self::start(sqlite::Sqlite::new(connection))
    }

    /// On a new database, with the durability that is the default.
    pub(crate) async fn on(engine: Engine, url: &str, partitions: u32) -> Self {
        if engine == Engine::Sqlite {
            let path = url.trim_start_matches("sqlite://");
            return Self::sqlite(Path::new(path), Durability::Full, partitions).await;
        }
        let connection = connect(url).await;
        prepare(&connection, partitions).await;
        match engine {
            Engine::Postgres => Self::start(postgres::Postgres::connect(url).await),
            _ => Self::start(mysql::MySql::new(connection)),
        }
    }

    fn start(database: impl Database) -> Self {
        let (queue, appended) = mpsc::channel(8192);
        let task = tokio::spawn(write(database, appended));
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

/// Makes the node's own tables.
async fn prepare(connection: &DatabaseConnection, partitions: u32) {
    migrate(connection).await.unwrap();
    for partition in 0..partitions {
        let sql = format!("insert into log_partition values ({partition}, 0)");
        connection.execute_unprepared(&sql).await.unwrap();
    }
}

async fn write(mut database: impl Database, mut queue: mpsc::Receiver<Appended>) {
    let mut heads: BTreeMap<u32, u64> = BTreeMap::new();
    let mut taken = Vec::new();
    while queue.recv_many(&mut taken, BATCH).await > 0 {
        let mut raised: BTreeMap<u32, u64> = BTreeMap::new();
        let mut replies = Vec::with_capacity(taken.len());
        let mut commits = Vec::with_capacity(taken.len());
        let ended = taken.iter().any(Option::is_none);
        for (commit, reply) in taken.drain(..).flatten() {
            let head = heads.entry(commit.partition.0).or_default();
            *head += 1;
            raised.insert(commit.partition.0, *head);
            commits.push((commit, *head));
            replies.push((reply, *head));
        }
        if ended {
            break;
        }
        let heads = raised.into_iter().collect();
        database.write(&Batch { heads, commits }).await;
        for (reply, position) in replies {
            let _ = reply.send(position);
        }
    }
    database.close().await;
}

/// The statement that inserts this many commits, with `?` for each value.
fn insert(rows: usize) -> String {
    let columns = commit_log::COLUMNS;
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    format!(
        "insert into commit_log values {}",
        vec![row; rows].join(",")
    )
}

/// The values of a row.
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
