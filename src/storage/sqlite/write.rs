//! A batch in one SQLite transaction.
//!
//! Rows go in as multi-row inserts with bound values, in chunks whose statements stay prepared.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait, Value,
};
use tokio::sync::Mutex;
use wow_kernel::commit::StoredSnapshot;
use wow_kernel::id::{EpochMillis, PartitionNo, Position};
use wow_kernel::ports::{AppendReceipt, StorageError};

use super::super::batch::{Batch, Entry, Written};
use super::super::error::{BatchFault, Fault, UniqueKey};
use super::super::rows::{self, Cells, signed};
use super::super::sql::{CHUNKS, chunks, rival_keys, rivals};
use super::super::writer::BatchStore;
use super::connect::SqliteFile;
use super::fault::{classify, classify_commit};
use super::lock::FileLock;
use super::statements;

static INSERT_COMMITS: LazyLock<[String; CHUNKS.len()]> =
    LazyLock::new(|| CHUNKS.map(statements::insert_commits));

static SAVE_SNAPSHOTS: LazyLock<[String; CHUNKS.len()]> =
    LazyLock::new(|| CHUNKS.map(statements::save_snapshots));

/// The one writer of a file.
#[derive(Debug)]
pub(super) struct SqliteWriter {
    file: SqliteFile,
    /// None after a failure, until the next batch connects again.
    connection: Option<DatabaseConnection>,
    /// The newest time this log was given: the machine's clock may step back, the log's doesn't.
    newest_at: EpochMillis,
    /// Held as long as anything may still be written.
    _lock: FileLock,
    /// Taken for each transaction, in turn with the leases.
    turn: Arc<Mutex<()>>,
}

impl SqliteWriter {
    pub(super) fn new(
        file: SqliteFile,
        connection: DatabaseConnection,
        newest_at: EpochMillis,
        lock: FileLock,
        turn: Arc<Mutex<()>>,
    ) -> Self {
        Self {
            file,
            connection: Some(connection),
            newest_at,
            _lock: lock,
            turn,
        }
    }

    async fn connection(&mut self) -> Result<DatabaseConnection, DbErr> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let connection = self.file.writer().await?;
        self.connection = Some(connection.clone());
        Ok(connection)
    }

    fn now(&mut self) -> EpochMillis {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = EpochMillis::try_from(since_epoch.as_millis()).unwrap_or(EpochMillis::MAX);
        self.newest_at = self.newest_at.max(now);
        self.newest_at
    }
}

#[async_trait]
impl BatchStore for SqliteWriter {
    async fn execute(&mut self, batch: &Batch<'_>) -> Result<Written, BatchFault> {
        let unavailable = |error: DbErr| BatchFault::Unavailable(error.to_string());
        let connection = self.connection().await.map_err(unavailable)?;
        let turn = Arc::clone(&self.turn);
        let _turn = turn.lock().await;
        let now = self.now();
        // A deferred transaction would ask for the write lock in its middle, and fail there.
        let immediate = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let begun = connection.begin_with_options(immediate).await;
        let transaction = begun.map_err(|error| BatchFault::from(classify(&error)))?;
        match write(&transaction, batch, now).await {
            Ok(written) => match transaction.commit().await {
                Ok(()) => Ok(written),
                Err(error) => Err(classify_commit(&error)),
            },
            Err(fault) => {
                let rolled_back = transaction.rollback().await;
                // After some errors SQLite has rolled back by itself, and refuses to do it again;
                // the writer then replaces the connection in any case.
                match (rolled_back, BatchFault::from(fault)) {
                    (Err(error), BatchFault::Taken(_) | BatchFault::Refused(_)) => {
                        Err(unavailable(error))
                    }
                    (_, fault) => Err(fault),
                }
            }
        }
    }

    async fn taken(&mut self, entries: &[&Entry]) -> Result<Vec<Option<UniqueKey>>, StorageError> {
        let keys = rival_keys(entries)?;
        let connection = self.connection().await.map_err(|error| classify(&error))?;
        let rows = connection
            .query_all_raw(statement(&statements::TEXTS.taken, [keys]))
            .await;
        rivals(&rows.map_err(|error| classify(&error))?, entries.len())
    }

    async fn reset(&mut self) {
        // Also where the rollback failed: SQLite rolls back by itself after some errors, and the
        // driver then believes that a transaction is still open.
        self.close().await;
    }

    async fn close(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "a connection didn't close cleanly");
        }
    }
}

/// Everything of a batch, inside its transaction.
async fn write(
    transaction: &DatabaseTransaction,
    batch: &Batch<'_>,
    now: EpochMillis,
) -> Result<Written, Fault> {
    let receipts = insert(transaction, batch, now).await?;
    save(transaction, &batch.snapshots.earlier, now).await?;
    save(transaction, &batch.snapshots.newest, now).await?;
    let moved = move_checkpoints(transaction, batch, now).await?;
    Ok(Written { receipts, moved })
}

/// Raises the heads, and inserts the entries at the positions that this gave (R80).
async fn insert(
    transaction: &DatabaseTransaction,
    batch: &Batch<'_>,
    now: EpochMillis,
) -> Result<Vec<AppendReceipt>, Fault> {
    if batch.entries.is_empty() {
        return Ok(Vec::new());
    }
    let before = raise_heads(transaction, batch).await?;
    let receipts = batch
        .receipts(&before, now)
        .map_err(|partition| Fault::Refused(format!("there is no partition {partition}")))?;
    for (size, chunk) in chunks(&batch.by_request()) {
        let mut values = Vec::with_capacity(chunk.len() * 17);
        for index in chunk {
            let position = receipts[*index].position;
            rows::push_commit(&mut values, batch.entries[*index], position, now);
        }
        execute(transaction, &INSERT_COMMITS[size], values).await?;
    }
    Ok(receipts)
}

/// Raises the heads; answers with what they were.
async fn raise_heads(
    transaction: &DatabaseTransaction,
    batch: &Batch<'_>,
) -> Result<BTreeMap<PartitionNo, Position>, Fault> {
    let counts = batch.partitions();
    let raised: Vec<_> = counts.iter().collect();
    let raised = rows::keys(&raised).map_err(|error| Fault::Refused(error.to_string()))?;
    let rows = transaction
        .query_all_raw(statement(&statements::RAISE_HEADS, [raised]))
        .await;
    let mut before = BTreeMap::new();
    for row in rows.map_err(|error| classify(&error))? {
        let mut cells = Cells::new(&row);
        let corrupt = |error: StorageError| Fault::Corrupt(error.to_string());
        let partition = PartitionNo(cells.number().map_err(corrupt)?);
        let head: Position = cells.number().map_err(corrupt)?;
        let count = counts.get(&partition).copied().unwrap_or_default();
        before.insert(partition, head - count);
    }
    Ok(before)
}

async fn save(
    transaction: &DatabaseTransaction,
    snapshots: &[&StoredSnapshot],
    now: EpochMillis,
) -> Result<(), Fault> {
    for (size, chunk) in chunks(snapshots) {
        let mut values = Vec::with_capacity(chunk.len() * 19);
        for snapshot in chunk {
            rows::push_snapshot(&mut values, snapshot, now)
                .map_err(|error| Fault::Refused(error.to_string()))?;
        }
        execute(transaction, &SAVE_SNAPSHOTS[size], values).await?;
    }
    Ok(())
}

/// For each checkpoint, whether it moved (R81).
async fn move_checkpoints(
    transaction: &DatabaseTransaction,
    batch: &Batch<'_>,
    now: EpochMillis,
) -> Result<Vec<bool>, Fault> {
    if batch.checkpoints.is_empty() {
        return Ok(Vec::new());
    }
    let keys = batch.checkpoints.iter().map(|checkpoint| {
        (
            &checkpoint.subscription,
            checkpoint.partition,
            signed(checkpoint.position),
            signed(checkpoint.epoch),
            signed(checkpoint.generation),
        )
    });
    let keys =
        rows::keys(&keys.collect::<Vec<_>>()).map_err(|error| Fault::Refused(error.to_string()))?;
    let text = &statements::MOVE_CHECKPOINTS;
    let values = [Value::from(keys), Value::from(now)];
    let rows = transaction.query_all_raw(statement(text, values)).await;
    let mut moved = vec![false; batch.checkpoints.len()];
    for row in rows.map_err(|error| classify(&error))? {
        let mut cells = Cells::new(&row);
        let corrupt = |error: StorageError| Fault::Corrupt(error.to_string());
        let subscription: String = cells.get().map_err(corrupt)?;
        let partition = PartitionNo(cells.number().map_err(corrupt)?);
        if let Some(index) = batch.checkpoint(&subscription, partition) {
            moved[index] = true;
        }
    }
    Ok(moved)
}

async fn execute(
    transaction: &DatabaseTransaction,
    text: &str,
    values: Vec<Value>,
) -> Result<(), Fault> {
    let done = transaction.execute_raw(statement(text, values)).await;
    done.map(|_| ()).map_err(|error| classify(&error))
}

/// A statement with its parameters.
pub(super) fn statement<V: Into<Value>>(
    text: &str,
    values: impl IntoIterator<Item = V>,
) -> Statement {
    Statement::from_sql_and_values(DbBackend::Sqlite, text, values.into_iter().map(Into::into))
}

#[cfg(test)]
mod tests;
