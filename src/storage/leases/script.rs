//! The statements of the leases, the same for every database but for its clock and its locks.
//!
//! Rows are locked before they are judged, and the clock is read under the lock: a renewal and a
//! taker that meet at the moment of expiry see one order of things, and never both succeed.
//! Partitions are locked before members, each in the order of their keys.

use std::collections::HashMap;
use std::time::Duration;

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, QueryResult,
    SqliteTransactionMode, TransactionOptions, TransactionTrait, Value,
};
use wow_kernel::id::PartitionNo;
use wow_kernel::ports::{Member, MemberClaim, PartitionLease};
use wow_migrations::names::{member, partition_lease};

use super::super::rows::Cells;
use super::super::sql::{list, numbered};
use super::cells::{duration, millis, number, read_lease, read_member, said, unread};

/// How long a row of a member that has expired is kept for people.
const EXPIRED_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// One run of a call.
pub(super) struct Script {
    database: DatabaseConnection,
    /// The database's clock, in epoch milliseconds.
    now: &'static str,
    /// What makes a read lock its rows.
    lock: &'static str,
    /// What makes an insert leave a row that is there.
    or_leave: &'static str,
}

impl Script {
    pub(super) fn new(database: DatabaseConnection) -> Self {
        let (now, lock, or_leave) = match database.get_database_backend() {
            DbBackend::MySql => (
                "cast(floor(unix_timestamp(sysdate(3)) * 1000) as signed)",
                " for update",
                " on duplicate key update partition_no = partition_no",
            ),
            DbBackend::Postgres => (
                "floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
                " for update",
                " on conflict (partition_no) do nothing",
            ),
            // Its transactions exclude each other from the beginning.
            _ => (
                "cast(unixepoch('subsec') * 1000 as integer)",
                "",
                " on conflict (partition_no) do nothing",
            ),
        };
        Self {
            database,
            now,
            lock,
            or_leave,
        }
    }

    async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        let immediate = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        self.database.begin_with_options(immediate).await
    }

    pub(super) async fn claim(
        &self,
        claimer: &Member,
        ttl: Duration,
    ) -> Result<MemberClaim, DbErr> {
        let transaction = self.begin().await?;
        let text = format!(
            "select incarnation, lease_expires_at - {} from {} where name = $1{}",
            self.now,
            member::TABLE,
            self.lock
        );
        let name = [Value::from(claimer.name.as_str())];
        let rows = query(&transaction, &text, name).await?;
        let Some(row) = rows.first() else {
            self.join(&transaction, claimer, ttl).await?;
            transaction.commit().await?;
            return Ok(MemberClaim::Claimed);
        };
        let mut cells = Cells::new(row);
        let incarnation: String = cells.get().map_err(unread)?;
        let left: i64 = cells.number().map_err(unread)?;
        if incarnation != claimer.incarnation.to_string() && left > 0 {
            transaction.rollback().await?;
            return Ok(MemberClaim::Held(millis(left)));
        }
        self.set(&transaction, claimer, ttl, "").await?;
        transaction.commit().await?;
        Ok(MemberClaim::Claimed)
    }

    /// Writes the row of a new member, and removes those that expired long ago.
    async fn join(
        &self,
        transaction: &DatabaseTransaction,
        claimer: &Member,
        ttl: Duration,
    ) -> Result<(), DbErr> {
        let text = format!(
            "insert into {table} ({columns}) \
             values ($1, $2, $3, $4, $5, $6, {now} + $7, {now})",
            table = member::TABLE,
            columns = member::COLUMNS.join(", "),
            now = self.now,
        );
        let mut values = vec![Value::from(claimer.name.as_str())];
        values.push(claimer.incarnation.to_string().into());
        values.extend(said(claimer));
        values.push(duration(ttl));
        execute(transaction, &text, values).await?;
        let text = format!(
            "delete from {} where lease_expires_at < {} - $1",
            member::TABLE,
            self.now
        );
        execute(transaction, &text, [duration(EXPIRED_KEPT)]).await?;
        Ok(())
    }

    /// Writes a row that is there, where it is as demanded; answers whether it was.
    async fn set(
        &self,
        transaction: &DatabaseTransaction,
        renewed: &Member,
        ttl: Duration,
        demand: &str,
    ) -> Result<bool, DbErr> {
        let text = format!(
            "update {table} set started_at = case when incarnation = $1 then started_at \
             else {now} end, incarnation = $2, address = $3, state = $4, protocol_min = $5, \
             protocol_max = $6, lease_expires_at = {now} + $7 where name = $8{demand}",
            table = member::TABLE,
            now = self.now,
        );
        let incarnation = renewed.incarnation.to_string();
        let mut values = vec![Value::from(incarnation.clone()), incarnation.into()];
        values.extend(said(renewed));
        values.extend([duration(ttl), renewed.name.as_str().into()]);
        Ok(execute(transaction, &text, values).await? > 0)
    }

    pub(super) async fn renew(&self, renewed: &Member, ttl: Duration) -> Result<bool, DbErr> {
        let transaction = self.begin().await?;
        let text = format!(
            "select 1 from {} where name = $1 and incarnation = $2{}",
            member::TABLE,
            self.lock
        );
        let incarnation = renewed.incarnation.to_string();
        let key = [Value::from(renewed.name.as_str()), incarnation.into()];
        let is_ours = !query(&transaction, &text, key).await?.is_empty();
        let demand = format!(" and lease_expires_at > {}", self.now);
        let renewed = is_ours && self.set(&transaction, renewed, ttl, &demand).await?;
        transaction.commit().await?;
        Ok(renewed)
    }

    pub(super) async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), DbErr> {
        let text = format!(
            "select 1, name, incarnation, address, state, protocol_min, protocol_max, \
             lease_expires_at - {now} from {members} \
             union all select 0, owner_name, owner_incarnation, null, state, partition_no, 0, \
             epoch from {partitions}",
            now = self.now,
            members = member::TABLE,
            partitions = partition_lease::TABLE,
        );
        let (mut members, mut leases) = (Vec::new(), Vec::new());
        for row in query(&self.database, &text, []).await? {
            let mut cells = Cells::new(&row);
            if cells.number::<i64>().map_err(unread)? == 1 {
                members.push(read_member(&mut cells).map_err(unread)?);
            } else {
                leases.push(read_lease(&mut cells).map_err(unread)?);
            }
        }
        Ok((members, leases))
    }

    pub(super) async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, DbErr> {
        let mut partitions: Vec<_> = seen.iter().map(|lease| lease.partition).collect();
        partitions.sort_unstable();
        partitions.dedup();
        self.create_missing(&partitions).await?;
        let transaction = self.begin().await?;
        let stored = self.lock_partitions(&transaction, &partitions).await?;
        let live = self.lock_members(&transaction, stored.values()).await?;
        let mut taken = Vec::new();
        for lease in seen {
            let Some(stored) = stored.get(&lease.partition) else {
                continue;
            };
            let is_held = stored.owner.as_ref().is_some_and(|(name, incarnation)| {
                live.get(name.as_str()) == Some(&incarnation.to_string())
            });
            if stored.epoch == lease.epoch && !is_held {
                taken.push(PartitionLease {
                    partition: lease.partition,
                    owner: Some((owner.name.clone(), owner.incarnation)),
                    epoch: lease.epoch + 1,
                });
            }
        }
        if !taken.is_empty() {
            let text = format!(
                "update {} set owner_name = $1, owner_incarnation = $2, state = 'owned', \
                 epoch = epoch + 1 where partition_no in ({})",
                partition_lease::TABLE,
                list(3, taken.len())
            );
            let mut values = vec![Value::from(owner.name.as_str())];
            values.push(owner.incarnation.to_string().into());
            values.extend(taken.iter().map(|lease| number(lease.partition)));
            execute(&transaction, &text, values).await?;
        }
        transaction.commit().await?;
        Ok(taken)
    }

    /// Makes rows of partitions that nobody ever took, so that there is something to lock.
    async fn create_missing(&self, partitions: &[PartitionNo]) -> Result<(), DbErr> {
        let text = format!(
            "select partition_no from {} where partition_no in ({})",
            partition_lease::TABLE,
            list(1, partitions.len())
        );
        let asked: Vec<_> = partitions.iter().copied().map(number).collect();
        let mut there = Vec::new();
        for row in query(&self.database, &text, asked).await? {
            there.push(PartitionNo(Cells::new(&row).number().map_err(unread)?));
        }
        for partition in partitions {
            if !there.contains(partition) {
                let text = format!(
                    "insert into {} (partition_no, epoch, state) values ($1, 0, 'free'){}",
                    partition_lease::TABLE,
                    self.or_leave
                );
                execute(&self.database, &text, [number(*partition)]).await?;
            }
        }
        Ok(())
    }

    async fn lock_partitions(
        &self,
        transaction: &DatabaseTransaction,
        partitions: &[PartitionNo],
    ) -> Result<HashMap<PartitionNo, PartitionLease>, DbErr> {
        let text = format!(
            "select owner_name, owner_incarnation, null, state, partition_no, 0, epoch from {} \
             where partition_no in ({}) order by partition_no{}",
            partition_lease::TABLE,
            list(1, partitions.len()),
            self.lock
        );
        let asked: Vec<_> = partitions.iter().copied().map(number).collect();
        let mut stored = HashMap::new();
        for row in query(transaction, &text, asked).await? {
            let lease = read_lease(&mut Cells::new(&row)).map_err(unread)?;
            stored.insert(lease.partition, lease);
        }
        Ok(stored)
    }

    /// The incarnations of the owners of leases that are live.
    async fn lock_members(
        &self,
        transaction: &DatabaseTransaction,
        leases: impl Iterator<Item = &PartitionLease>,
    ) -> Result<HashMap<String, String>, DbErr> {
        let owners = leases.filter_map(|lease| lease.owner.as_ref());
        let mut names: Vec<_> = owners.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut live = HashMap::new();
        if names.is_empty() {
            return Ok(live);
        }
        // Locked in one statement and judged in the next: only then all locks are had.
        let named = list(1, names.len());
        let members = member::TABLE;
        let asked = || names.iter().map(|name| Value::from(*name));
        let lock = format!(
            "select name from {members} where name in ({named}) order by name{}",
            self.lock
        );
        query(transaction, &lock, asked()).await?;
        let judge = format!(
            "select name, incarnation from {members} where name in ({named}) \
             and lease_expires_at > {}",
            self.now
        );
        for row in query(transaction, &judge, asked()).await? {
            let mut cells = Cells::new(&row);
            live.insert(cells.get().map_err(unread)?, cells.get().map_err(unread)?);
        }
        Ok(live)
    }

    pub(super) async fn release(
        &self,
        owner: &Member,
        partitions: &[PartitionNo],
    ) -> Result<(), DbErr> {
        let text = format!(
            "update {} set owner_name = null, owner_incarnation = null, state = 'free' \
             where owner_name = $1 and owner_incarnation = $2 and partition_no in ({})",
            partition_lease::TABLE,
            list(3, partitions.len())
        );
        let mut values = vec![Value::from(owner.name.as_str())];
        values.push(owner.incarnation.to_string().into());
        values.extend(partitions.iter().copied().map(number));
        execute(&self.database, &text, values).await.map(|_| ())
    }

    pub(super) async fn leave(&self, leaving: &Member) -> Result<(), DbErr> {
        let text = format!(
            "delete from {} where name = $1 and incarnation = $2",
            member::TABLE
        );
        let incarnation = leaving.incarnation.to_string();
        let key = [Value::from(leaving.name.as_str()), incarnation.into()];
        execute(&self.database, &text, key).await.map(|_| ())
    }
}

async fn query(
    database: &impl ConnectionTrait,
    text: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<QueryResult>, DbErr> {
    let statement = numbered(database.get_database_backend(), text, values);
    database.query_all_raw(statement).await
}

/// Answers with how many rows were met.
async fn execute(
    database: &impl ConnectionTrait,
    text: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<u64, DbErr> {
    let statement = numbered(database.get_database_backend(), text, values);
    Ok(database.execute_raw(statement).await?.rows_affected())
}
