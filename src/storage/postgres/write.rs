//! A batch in one statement of PostgreSQL, which is a transaction by itself: one round trip.
//!
//! Rows travel as arrays, one a column, so that one text serves a batch of any size.

use std::collections::{BTreeMap, HashMap};

use sea_orm::sqlx::postgres::PgArguments;
use sea_orm::sqlx::query::Query;
use sea_orm::sqlx::{
    self, Error as DriverError, Executor as _, PgConnection, Postgres, Row as _, SqlSafeStr as _,
};
use serde_json::value::RawValue;
use wow_kernel::commit::StoredSnapshot;
use wow_kernel::id::{EpochMillis, PartitionNo, Position};
use wow_kernel::ports::Checkpoint;

use super::super::batch::{Batch, Entry, Written};
use super::super::error::Fault;
use super::super::rows::{self, signed};
use super::super::server::{CommitSent, WriteFault};
use super::fault::of_batch;
use super::statements::{self, Parts};

type Bound = Query<'static, Postgres, PgArguments>;

/// Writes a batch.
pub(super) async fn write(
    connection: &mut PgConnection,
    batch: &Batch<'_>,
    newest_at: EpochMillis,
    commit: &CommitSent,
) -> Result<Written, WriteFault> {
    if batch.snapshots.earlier.is_empty() {
        let statement = Statement::new(batch, &batch.snapshots.newest, newest_at)?;
        statement.prepare(connection, commit).await?;
        // From here on it may commit.
        commit.set();
        return statement.run(connection, batch, commit).await;
    }
    // One statement can't write a row twice, so these take two, and a transaction around them.
    simple(connection, "begin", commit).await?;
    match write_both(connection, batch, newest_at, commit).await {
        Ok(written) => {
            commit.set();
            simple(connection, "commit", commit).await?;
            Ok(written)
        }
        Err(fault) => {
            if let Err(error) = connection.execute("rollback").await {
                return Err(commit.silence(error.to_string()));
            }
            Err(fault)
        }
    }
}

async fn simple(
    connection: &mut PgConnection,
    text: &'static str,
    commit: &CommitSent,
) -> Result<(), WriteFault> {
    match connection.execute(text).await {
        Ok(_) => Ok(()),
        Err(error) => Err(of_batch(&error, commit)),
    }
}

/// The older snapshots first, then all the rest.
async fn write_both(
    connection: &mut PgConnection,
    batch: &Batch<'_>,
    newest_at: EpochMillis,
    commit: &CommitSent,
) -> Result<Written, WriteFault> {
    let none = Batch {
        entries: Vec::new(),
        snapshots: Default::default(),
        checkpoints: Vec::new(),
    };
    let earlier = Statement::new(&none, &batch.snapshots.earlier, newest_at)?;
    earlier.run(connection, &none, commit).await?;
    let newest = Statement::new(batch, &batch.snapshots.newest, newest_at)?;
    newest.run(connection, batch, commit).await
}

/// A statement with its parameters.
struct Statement {
    text: &'static str,
    bound: Bound,
}

impl Statement {
    fn new(
        batch: &Batch<'_>,
        snapshots: &[&StoredSnapshot],
        newest_at: EpochMillis,
    ) -> Result<Self, WriteFault> {
        let text = statements::write(Parts {
            entries: !batch.entries.is_empty(),
            snapshots: !snapshots.is_empty(),
            checkpoints: !batch.checkpoints.is_empty(),
        });
        let mut bound = sqlx::query(text).bind(newest_at);
        if !batch.entries.is_empty() {
            bound = bind_heads(bound, batch);
            bound = bind_entries(bound, batch);
        }
        if !snapshots.is_empty() {
            bound = bind_snapshots(bound, snapshots)
                .map_err(|error| WriteFault::Undone(Fault::Refused(error.to_string())))?;
        }
        if !batch.checkpoints.is_empty() {
            bound = bind_checkpoints(bound, &batch.checkpoints);
        }
        Ok(Self { text, bound })
    }

    /// Has the server know the text before anything is at stake; a no-op after the first time.
    async fn prepare(
        &self,
        connection: &mut PgConnection,
        commit: &CommitSent,
    ) -> Result<(), WriteFault> {
        match connection.prepare(self.text.into_sql_str()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(of_batch(&error, commit)),
        }
    }

    async fn run(
        self,
        connection: &mut PgConnection,
        batch: &Batch<'_>,
        commit: &CommitSent,
    ) -> Result<Written, WriteFault> {
        let rows = self.bound.fetch_all(connection).await;
        let rows = rows.map_err(|error| of_batch(&error, commit))?;
        let mut before: BTreeMap<PartitionNo, Position> = BTreeMap::new();
        let mut committed_at = 0;
        let mut moved = vec![false; batch.checkpoints.len()];
        // A row that can't be read says nothing of what was committed.
        let unread = |error: DriverError| commit.silence(error.to_string());
        for row in rows {
            let partition: i64 = row.try_get(0).map_err(unread)?;
            let partition = PartitionNo(u32::try_from(partition).unwrap_or(u32::MAX));
            let subscription: Option<String> = row.try_get(3).map_err(unread)?;
            if let Some(subscription) = subscription {
                let index = batch.checkpoint(&subscription, partition);
                if let Some(moved) = index.and_then(|index| moved.get_mut(index)) {
                    *moved = true;
                }
                continue;
            }
            let head: i64 = row.try_get(1).map_err(unread)?;
            before.insert(partition, Position::try_from(head).unwrap_or_default());
            committed_at = row.try_get(2).map_err(unread)?;
        }
        match batch.receipts(&before, committed_at) {
            Ok(receipts) => Ok(Written { receipts, moved }),
            Err(partition) => Err(commit.silence(format!("partition {partition} has no head"))),
        }
    }
}

fn number(partition: PartitionNo) -> i32 {
    i32::try_from(partition.0).unwrap_or(i32::MAX)
}

fn bind_heads(bound: Bound, batch: &Batch<'_>) -> Bound {
    let counts = batch.partitions();
    let partitions: Vec<i32> = counts.keys().copied().map(number).collect();
    let rows: Vec<i64> = counts.values().copied().map(signed).collect();
    bound.bind(partitions).bind(rows)
}

fn bind_entries(bound: Bound, batch: &Batch<'_>) -> Bound {
    let order = batch.by_request();
    let places = batch.places();
    let entries: Vec<&Entry> = order.iter().map(|index| batch.entries[*index]).collect();
    let texts = |text: fn(&Entry) -> &str| -> Vec<&str> {
        entries.iter().map(|entry| text(entry)).collect()
    };
    let heads: HashMap<PartitionNo, i32> = batch.partitions().into_keys().zip(1..).collect();
    let heads = entries
        .iter()
        .map(|entry| heads.get(&entry.commit.partition).copied());
    let partitions = entries.iter().map(|entry| number(entry.commit.partition));
    let places = order.iter().map(|index| signed(places[*index]));
    let versions = entries.iter().map(|entry| signed(entry.commit.version));
    let command_ids = entries
        .iter()
        .map(|entry| entry.commit.command_id.to_string());
    let results = entries
        .iter()
        .map(|entry| entry.commit.result.as_deref().map(RawValue::get));
    bound
        .bind(heads.collect::<Vec<_>>())
        .bind(partitions.collect::<Vec<_>>())
        .bind(places.collect::<Vec<_>>())
        .bind(texts(|entry| entry.commit.key.tenant.as_str()))
        .bind(texts(|entry| entry.commit.key.aggregate_type.as_str()))
        .bind(texts(|entry| entry.commit.key.id.as_str()))
        .bind(versions.collect::<Vec<_>>())
        .bind(texts(|entry| entry.commit.request_id.as_str()))
        .bind(command_ids.collect::<Vec<_>>())
        .bind(texts(|entry| &entry.commit.command_type))
        .bind(texts(|entry| &entry.commit.principal))
        .bind(texts(|entry| entry.commit.owner.as_str()))
        .bind(texts(|entry| entry.commit.space.as_str()))
        .bind(texts(|entry| entry.commit.origin.as_str()))
        .bind(texts(|entry| &entry.events))
        .bind(results.collect::<Vec<_>>())
        .bind(texts(|entry| &entry.headers))
}

fn bind_snapshots(bound: Bound, snapshots: &[&StoredSnapshot]) -> Result<Bound, serde_json::Error> {
    let texts = |text: fn(&StoredSnapshot) -> &str| -> Vec<&str> {
        snapshots.iter().map(|snapshot| text(snapshot)).collect()
    };
    let numbers = |number: fn(&StoredSnapshot) -> i64| -> Vec<i64> {
        snapshots.iter().map(|snapshot| number(snapshot)).collect()
    };
    let partitions = snapshots.iter().map(|snapshot| number(snapshot.partition));
    let deleted = snapshots.iter().map(|snapshot| snapshot.facts.deleted);
    let tags: Result<Vec<String>, _> = snapshots
        .iter()
        .map(|snapshot| rows::json(&snapshot.facts.tags))
        .collect();
    let requests = snapshots
        .iter()
        .map(|snapshot| snapshot.recent_requests.as_deref());
    let event_ids = snapshots
        .iter()
        .map(|snapshot| snapshot.facts.event_id.map(|id| id.to_string()));
    Ok(bound
        .bind(texts(|snapshot| snapshot.key.tenant.as_str()))
        .bind(texts(|snapshot| snapshot.key.aggregate_type.as_str()))
        .bind(texts(|snapshot| snapshot.key.id.as_str()))
        .bind(numbers(|snapshot| signed(snapshot.version)))
        .bind(partitions.collect::<Vec<_>>())
        .bind(numbers(|snapshot| signed(snapshot.position)))
        .bind(texts(|snapshot| snapshot.facts.owner.as_str()))
        .bind(texts(|snapshot| snapshot.facts.space.as_str()))
        .bind(deleted.collect::<Vec<_>>())
        .bind(tags?)
        .bind(texts(|snapshot| &snapshot.state))
        .bind(numbers(|snapshot| snapshot.state_revision.into()))
        .bind(requests.collect::<Vec<_>>())
        .bind(texts(|snapshot| &snapshot.facts.first_operator))
        .bind(texts(|snapshot| &snapshot.facts.operator))
        .bind(numbers(|snapshot| snapshot.facts.first_event_time))
        .bind(numbers(|snapshot| snapshot.facts.event_time))
        .bind(event_ids.collect::<Vec<_>>()))
}

fn bind_checkpoints(bound: Bound, checkpoints: &[&Checkpoint]) -> Bound {
    // In the order of their keys: two that run at once lock them in it.
    let mut sorted = checkpoints.to_vec();
    sorted.sort_by(|a, b| (&a.subscription, a.partition).cmp(&(&b.subscription, b.partition)));
    let subscriptions = sorted
        .iter()
        .map(|checkpoint| checkpoint.subscription.as_str());
    let partitions = sorted.iter().map(|checkpoint| number(checkpoint.partition));
    let numbers = |number: fn(&Checkpoint) -> u64| -> Vec<i64> {
        sorted
            .iter()
            .map(|checkpoint| signed(number(checkpoint)))
            .collect()
    };
    bound
        .bind(subscriptions.collect::<Vec<_>>())
        .bind(partitions.collect::<Vec<_>>())
        .bind(numbers(|checkpoint| checkpoint.position))
        .bind(numbers(|checkpoint| checkpoint.epoch))
        .bind(numbers(|checkpoint| checkpoint.generation))
}
