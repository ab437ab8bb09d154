//! What goes into one transaction together, and what may not.
//!
//! A batch takes whatever is waiting, until it is full or the next piece of work can't share it.
//! Two entries of one aggregate share a batch only where the second continues the first, for
//! then it was decided on it; one request id, or one checkpoint, is at most once in a batch, so
//! that a violation of a key always points at a row that was there before.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::id::{
    AggregateKey, AggregateType, EpochMillis, PartitionNo, Position, RequestId, TenantId, Version,
};
use wow_kernel::ports::{AppendError, AppendReceipt, Checkpoint, StorageError};

use super::rows;
use super::settings::BatchLimits;

/// What a row takes besides its texts, roughly.
const ROW_BYTES: usize = 256;

/// A commit on its way into the log. Its JSON is written by the caller, so that the writer, of
/// which there is one, does no more than it must.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) commit: Arc<Commit>,
    pub(super) events: String,
    pub(super) headers: String,
}

impl Entry {
    /// # Errors
    /// [`AppendError::Refused`] for events that JSON can't hold.
    pub(super) fn new(commit: Arc<Commit>) -> Result<Self, AppendError> {
        let refused = |error: serde_json::Error| AppendError::Refused(error.to_string());
        let events = rows::json(&commit.events).map_err(refused)?;
        let headers = rows::json(&commit.headers).map_err(refused)?;
        Ok(Self {
            commit,
            events,
            headers,
        })
    }

    /// Roughly how many bytes its row takes.
    pub(super) fn bytes(&self) -> usize {
        let result = self
            .commit
            .result
            .as_ref()
            .map_or(0, |result| result.get().len());
        ROW_BYTES + self.events.len() + self.headers.len() + result
    }
}

/// An append that waits for its batch.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) entry: Entry,
    pub(super) reply: oneshot::Sender<Result<AppendReceipt, AppendError>>,
    /// Its share of the queue's bytes, given back when this is dropped.
    pub(super) _room: OwnedSemaphorePermit,
}

/// Snapshots that are saved together.
#[derive(Debug)]
pub(super) struct Save {
    pub(super) snapshots: Vec<StoredSnapshot>,
    pub(super) reply: oneshot::Sender<Result<(), StorageError>>,
}

/// A checkpoint that moves.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) checkpoint: Checkpoint,
    pub(super) reply: oneshot::Sender<Result<bool, StorageError>>,
}

/// One piece of work for a log writer.
#[derive(Debug)]
pub(super) enum Work {
    Append(Append),
    Save(Save),
    Move(Move),
}

impl Work {
    fn rows(&self) -> usize {
        match self {
            Self::Append(_) | Self::Move(_) => 1,
            Self::Save(save) => save.snapshots.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.entry.bytes(),
            Self::Save(save) => save.snapshots.iter().map(snapshot_bytes).sum(),
            Self::Move(_) => ROW_BYTES,
        }
    }
}

/// Work that was gathered and not yet answered.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) appends: Vec<Append>,
    pub(super) saves: Vec<Save>,
    pub(super) moves: Vec<Move>,
    rows: usize,
    bytes: usize,
    versions: HashMap<AggregateKey, Version>,
    requests: HashSet<(TenantId, AggregateType, RequestId)>,
    checkpoints: HashSet<(String, PartitionNo)>,
}

impl Pending {
    /// Whether it holds nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.saves.is_empty() && self.moves.is_empty()
    }

    /// Whether a piece of work may join; the first always may.
    pub(super) fn admits(&self, work: &Work, limits: &BatchLimits) -> bool {
        if self.is_empty() {
            return true;
        }
        let fits =
            self.rows + work.rows() <= limits.rows && self.bytes + work.bytes() <= limits.bytes;
        fits && match work {
            Work::Append(append) => {
                let commit = &append.entry.commit;
                let continues = self
                    .versions
                    .get(&commit.key)
                    .is_none_or(|newest| commit.version == newest + 1);
                continues && !self.requests.contains(&request_key(commit))
            }
            Work::Save(_) => true,
            Work::Move(moved) => !self
                .checkpoints
                .contains(&checkpoint_key(&moved.checkpoint)),
        }
    }

    /// Takes work in.
    pub(super) fn push(&mut self, work: Work) {
        self.rows += work.rows();
        self.bytes += work.bytes();
        match work {
            Work::Append(append) => {
                let commit = &append.entry.commit;
                self.versions.insert(commit.key.clone(), commit.version);
                self.requests.insert(request_key(commit));
                self.appends.push(append);
            }
            Work::Save(save) => self.saves.push(save),
            Work::Move(moved) => {
                self.checkpoints.insert(checkpoint_key(&moved.checkpoint));
                self.moves.push(moved);
            }
        }
    }

    /// Splits it into the smallest pieces that stand or fall by themselves: the entries of one
    /// aggregate, one save, one checkpoint.
    pub(super) fn into_units(self) -> Vec<Self> {
        let mut units: Vec<Self> = Vec::new();
        let mut unit_of: HashMap<AggregateKey, usize> = HashMap::new();
        for append in self.appends {
            let key = append.entry.commit.key.clone();
            let index = *unit_of.entry(key).or_insert_with(|| {
                units.push(Self::default());
                units.len() - 1
            });
            units[index].appends.push(append);
        }
        units.extend(self.saves.into_iter().map(|save| Self {
            saves: vec![save],
            ..Self::default()
        }));
        units.extend(self.moves.into_iter().map(|moved| Self {
            moves: vec![moved],
            ..Self::default()
        }));
        units
    }

    /// What is written, as the database gets it.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            entries: self.appends.iter().map(|append| &append.entry).collect(),
            snapshots: SnapshotRows::of(self.saves.iter().flat_map(|save| &save.snapshots)),
            checkpoints: self.moves.iter().map(|moved| &moved.checkpoint).collect(),
        }
    }
}

fn snapshot_bytes(snapshot: &StoredSnapshot) -> usize {
    let requests = snapshot
        .recent_requests
        .as_ref()
        .map_or(0, |requests| requests.len());
    ROW_BYTES + snapshot.state.len() + requests
}

fn request_key(commit: &Commit) -> (TenantId, AggregateType, RequestId) {
    (
        commit.key.tenant.clone(),
        commit.key.aggregate_type.clone(),
        commit.request_id.clone(),
    )
}

fn checkpoint_key(checkpoint: &Checkpoint) -> (String, PartitionNo) {
    (checkpoint.subscription.clone(), checkpoint.partition)
}

/// What one transaction writes.
#[derive(Debug)]
pub(super) struct Batch<'p> {
    /// In the order in which they came: positions are given in this order.
    pub(super) entries: Vec<&'p Entry>,
    /// The snapshots.
    pub(super) snapshots: SnapshotRows<'p>,
    /// One at most for each subscription and partition.
    pub(super) checkpoints: Vec<&'p Checkpoint>,
}

impl<'p> Batch<'p> {
    /// The entries in the order of their request keys: every transaction that inserts them in
    /// this order locks them in it, so that two never wait for each other.
    pub(super) fn by_request(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_unstable_by(|a, b| {
            let key = |index: &usize| {
                let commit: &'p Commit = &self.entries[*index].commit;
                (
                    &commit.key.tenant,
                    &commit.key.aggregate_type,
                    &commit.request_id,
                )
            };
            key(a).cmp(&key(b))
        });
        order
    }

    /// The partitions of the entries, in their order, and how many rows each gets.
    pub(super) fn partitions(&self) -> BTreeMap<PartitionNo, u64> {
        let mut rows: BTreeMap<PartitionNo, u64> = BTreeMap::new();
        for entry in &self.entries {
            *rows.entry(entry.commit.partition).or_default() += 1;
        }
        rows
    }

    /// The place of each entry among those of its partition, from 1 on, in the order in which
    /// they came.
    pub(super) fn places(&self) -> Vec<Position> {
        let mut rows: HashMap<PartitionNo, Position> = HashMap::new();
        let places = self.entries.iter().map(|entry| {
            let place = rows.entry(entry.commit.partition).or_default();
            *place += 1;
            *place
        });
        places.collect()
    }

    /// What each entry got, by the heads before them; or a partition that has no head.
    pub(super) fn receipts(
        &self,
        before: &BTreeMap<PartitionNo, Position>,
        committed_at: EpochMillis,
    ) -> Result<Vec<AppendReceipt>, PartitionNo> {
        let entries = self.entries.iter().zip(self.places());
        let receipts = entries.map(|(entry, place)| {
            let partition = entry.commit.partition;
            let head = before.get(&partition).ok_or(partition)?;
            Ok(AppendReceipt {
                position: head + place,
                committed_at,
            })
        });
        receipts.collect()
    }

    /// The index of the checkpoint of a subscription in a partition.
    pub(super) fn checkpoint(&self, subscription: &str, partition: PartitionNo) -> Option<usize> {
        self.checkpoints.iter().position(|checkpoint| {
            checkpoint.subscription == subscription && checkpoint.partition == partition
        })
    }
}

/// Snapshots, the newest of each aggregate, in the order of their keys (R84).
#[derive(Debug, Default)]
pub(super) struct SnapshotRows<'p> {
    /// Written first: older ones that carry recent requests which the newest of their aggregate
    /// doesn't, and would otherwise lose.
    pub(super) earlier: Vec<&'p StoredSnapshot>,
    /// Written then: the newest ones.
    pub(super) newest: Vec<&'p StoredSnapshot>,
}

impl<'p> SnapshotRows<'p> {
    /// Saving these rows comes to the same as saving all the snapshots one after the other.
    fn of(snapshots: impl Iterator<Item = &'p StoredSnapshot>) -> Self {
        let age = |snapshot: &StoredSnapshot| (snapshot.version, snapshot.state_revision);
        let mut all: Vec<&StoredSnapshot> = snapshots.collect();
        // Stable, and newest first within a key: of two that are equally new the first counts.
        all.sort_by(|a, b| a.key.cmp(&b.key).then_with(|| age(b).cmp(&age(a))));
        let mut rows = Self::default();
        for of_one in all.chunk_by(|a, b| a.key == b.key) {
            let newest = of_one[0];
            rows.newest.push(newest);
            if newest.recent_requests.is_none() {
                rows.earlier
                    .extend(of_one.iter().find(|older| older.recent_requests.is_some()));
            }
        }
        rows
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.earlier.len() + self.newest.len()
    }
}

/// What a transaction gave its batch.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// One for each entry.
    pub(super) receipts: Vec<AppendReceipt>,
    /// For each checkpoint, whether it moved.
    pub(super) moved: Vec<bool>,
}
