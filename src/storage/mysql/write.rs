//! A batch in one transaction of MySQL.
//!
//! Its locks have an order, which keeps two that run at once from waiting for each other: the heads
//! by their number, then entries by their request, snapshots and checkpoints by their keys. The
//! clock is read under the heads' locks, so that times follow positions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use sea_orm::sqlx::mysql::MySqlArguments;
use sea_orm::sqlx::query::Query;
use sea_orm::sqlx::{self, Executor as _, MySql};
use sea_orm::{QueryResult, Value};
use wow_kernel::commit::StoredSnapshot;
use wow_kernel::id::{EpochMillis, PartitionNo, Position};
use wow_kernel::ports::{Checkpoint, StorageError};

use super::super::batch::{Batch, Written};
use super::super::error::Fault;
use super::super::rows::{self, Cells, signed};
use super::super::server::{CommitSent, WriteFault};
use super::super::sql::{CHUNKS, chunks};
use super::connect::Session;
use super::fault::of_batch;
use super::statements;

type Texts = LazyLock<[String; CHUNKS.len()]>;

static INSERT_COMMITS: Texts = LazyLock::new(|| CHUNKS.map(statements::insert_commits));

static SAVE_SNAPSHOTS: Texts = LazyLock::new(|| CHUNKS.map(statements::save_snapshots));

static MOVE_CHECKPOINTS: Texts = LazyLock::new(|| CHUNKS.map(statements::move_checkpoints));

/// Writes a batch.
pub(super) async fn write(
    session: &mut Session,
    batch: &Batch<'_>,
    newest_at: EpochMillis,
    commit: &CommitSent,
) -> Result<Written, WriteFault> {
    let mut transaction = Transaction { session, commit };
    transaction.simple("start transaction").await?;
    match transaction.write(batch, newest_at).await {
        Ok(written) => {
            commit.set();
            transaction.simple("commit").await?;
            Ok(written)
        }
        Err(fault) => {
            // Also after a deadlock, which has undone all, but after a wait for a lock that took
            // too long only the statement is.
            transaction.simple("rollback").await?;
            Err(fault)
        }
    }
}

struct Transaction<'t> {
    session: &'t mut Session,
    commit: &'t CommitSent,
}

impl Transaction<'_> {
    async fn simple(&mut self, text: &'static str) -> Result<(), WriteFault> {
        match self.session.connection.execute(text).await {
            Ok(_) => Ok(()),
            Err(error) => Err(of_batch(&error, self.commit)),
        }
    }

    async fn write(
        &mut self,
        batch: &Batch<'_>,
        newest_at: EpochMillis,
    ) -> Result<Written, WriteFault> {
        let (before, now) = self.raise_heads(batch).await?;
        let now = now.max(newest_at);
        let receipts = batch
            .receipts(&before, now)
            .map_err(|partition| refused(format!("there is no partition {partition}")))?;
        for (size, chunk) in chunks(&batch.by_request()) {
            let mut values = Vec::with_capacity(chunk.len() * 17);
            for index in chunk {
                let position = receipts[*index].position;
                rows::push_commit(&mut values, batch.entries[*index], position, now);
            }
            self.execute(&INSERT_COMMITS[size], values).await?;
        }
        self.save(&batch.snapshots.earlier, now).await?;
        self.save(&batch.snapshots.newest, now).await?;
        let moved = self.move_checkpoints(&batch.checkpoints, now).await?;
        Ok(Written { receipts, moved })
    }

    /// Raises the heads; answers with what they were, and the time.
    async fn raise_heads(
        &mut self,
        batch: &Batch<'_>,
    ) -> Result<(BTreeMap<PartitionNo, Position>, EpochMillis), WriteFault> {
        let mut before = BTreeMap::new();
        let mut now = 0;
        if batch.entries.is_empty() {
            for row in self.query(statements::NOW, None).await? {
                now = Cells::new(&row).number().map_err(unread)?;
            }
            return Ok((before, now));
        }
        let texts = self.session.flavour.writing();
        let counts = batch.partitions();
        let partitions: Vec<_> = counts.keys().map(|partition| [partition]).collect();
        let locked = self.query(&texts.lock_heads, Some(json(&partitions)?));
        for row in locked.await? {
            let mut cells = Cells::new(&row);
            let partition = PartitionNo(cells.number().map_err(unread)?);
            before.insert(partition, cells.number().map_err(unread)?);
            now = now.max(cells.number().map_err(unread)?);
        }
        let raised: Vec<_> = counts.iter().collect();
        self.query(&texts.raise_heads, Some(json(&raised)?)).await?;
        Ok((before, now))
    }

    async fn save(
        &mut self,
        snapshots: &[&StoredSnapshot],
        now: EpochMillis,
    ) -> Result<(), WriteFault> {
        for (size, chunk) in chunks(snapshots) {
            let mut values = Vec::with_capacity(chunk.len() * 19);
            for snapshot in chunk {
                rows::push_snapshot(&mut values, snapshot, now)
                    .map_err(|error| refused(error.to_string()))?;
            }
            self.execute(&SAVE_SNAPSHOTS[size], values).await?;
        }
        Ok(())
    }

    /// For each checkpoint, whether it moved (R81): whether the row then is what was asked for.
    /// The count of changed rows doesn't tell.
    async fn move_checkpoints(
        &mut self,
        checkpoints: &[&Checkpoint],
        now: EpochMillis,
    ) -> Result<Vec<bool>, WriteFault> {
        if checkpoints.is_empty() {
            return Ok(Vec::new());
        }
        let mut sorted = checkpoints.to_vec();
        sorted.sort_by(|a, b| (&a.subscription, a.partition).cmp(&(&b.subscription, b.partition)));
        for (size, chunk) in chunks(&sorted) {
            let mut values = Vec::with_capacity(chunk.len() * 6);
            for checkpoint in chunk {
                values.extend([
                    Value::from(checkpoint.subscription.as_str()),
                    Value::from(i64::from(checkpoint.partition.0)),
                    Value::from(signed(checkpoint.position)),
                    Value::from(signed(checkpoint.epoch)),
                    Value::from(signed(checkpoint.generation)),
                    Value::from(now),
                ]);
            }
            self.execute(&MOVE_CHECKPOINTS[size], values).await?;
        }
        let keys: Vec<_> = checkpoints
            .iter()
            .map(|checkpoint| (&checkpoint.subscription, checkpoint.partition))
            .collect();
        let text = &self.session.flavour.writing().moved;
        let mut moved = vec![false; checkpoints.len()];
        for row in self.query(text, Some(json(&keys)?)).await? {
            let mut cells = Cells::new(&row);
            let index: usize = cells.number().map_err(unread)?;
            let stored: [u64; 3] = [
                cells.number().map_err(unread)?,
                cells.number().map_err(unread)?,
                cells.number().map_err(unread)?,
            ];
            if let (Some(asked), Some(moved)) = (checkpoints.get(index), moved.get_mut(index)) {
                *moved = stored == [asked.position, asked.epoch, asked.generation];
            }
        }
        Ok(moved)
    }

    async fn query(
        &mut self,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, WriteFault> {
        let mut query = sqlx::query(text);
        if let Some(keys) = keys {
            query = query.bind(keys);
        }
        match query.fetch_all(&mut self.session.connection).await {
            Ok(rows) => Ok(rows.into_iter().map(QueryResult::from).collect()),
            Err(error) => Err(of_batch(&error, self.commit)),
        }
    }

    async fn execute(&mut self, text: &'static str, values: Vec<Value>) -> Result<(), WriteFault> {
        let query = values.into_iter().fold(sqlx::query(text), bind);
        match query.execute(&mut self.session.connection).await {
            Ok(_) => Ok(()),
            Err(error) => Err(of_batch(&error, self.commit)),
        }
    }
}

/// Binds a cell of a row; they are texts, numbers and flags (`rows`).
fn bind(
    query: Query<'static, MySql, MySqlArguments>,
    value: Value,
) -> Query<'static, MySql, MySqlArguments> {
    match value {
        Value::String(text) => query.bind(text),
        Value::BigInt(number) => query.bind(number),
        Value::Bool(flag) => query.bind(flag),
        other => query.bind(other.to_string()),
    }
}

fn refused(reason: String) -> WriteFault {
    WriteFault::Undone(Fault::Refused(reason))
}

/// Before the commit, so nothing is there.
fn unread(error: StorageError) -> WriteFault {
    WriteFault::Undone(Fault::Corrupt(error.to_string()))
}

fn json<T: serde::Serialize>(keys: &T) -> Result<String, WriteFault> {
    rows::keys(keys).map_err(|error| refused(error.to_string()))
}
