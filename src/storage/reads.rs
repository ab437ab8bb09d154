//! What a database is asked, in batches; each database answers in its own SQL.
//!
//! An answer is a list with one element for each question, in their order, so that a row that
//! can't be read fails the one who asked for it and nobody else.

use async_trait::async_trait;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::id::{
    AggregateKey, AggregateType, PartitionNo, Position, RequestId, TenantId, Version,
};
use wow_kernel::ports::{Checkpoint, ColdHistory, PartitionHead, Probe, StorageError};

use super::batcher::Answers;

/// Which commit a request id made (R42).
#[derive(Debug, Clone)]
pub(super) struct RequestQuestion {
    pub(super) tenant: TenantId,
    pub(super) aggregate_type: AggregateType,
    pub(super) request_id: RequestId,
}

/// An aggregate's newest version, and perhaps what a request id made (R58).
#[derive(Debug, Clone)]
pub(super) struct ProbeQuestion {
    pub(super) key: AggregateKey,
    pub(super) request_id: Option<RequestId>,
}

/// Commits of an aggregate with versions in `after + 1 ..= up_to`. Versions have no gaps, so a
/// range of them is also a limit.
#[derive(Debug, Clone)]
pub(super) struct AggregatePage {
    pub(super) key: AggregateKey,
    pub(super) after: Version,
    pub(super) up_to: Version,
}

/// Commits of a partition at positions in `after + 1 ..= up_to`; a limit likewise (R80).
#[derive(Debug, Clone)]
pub(super) struct PartitionPage {
    pub(super) partition: PartitionNo,
    pub(super) after: Position,
    pub(super) up_to: Position,
}

/// The checkpoints of a subscription in these partitions.
#[derive(Debug, Clone)]
pub(super) struct CheckpointQuestion {
    pub(super) subscription: String,
    pub(super) partitions: Vec<PartitionNo>,
}

/// How many commits a cold history brings along at once.
pub(super) const TAIL_PAGE: u64 = 128;

/// The reading half of a database.
#[async_trait]
pub(super) trait Reads: Send + Sync + 'static {
    async fn requests(&self, questions: Vec<RequestQuestion>) -> Answers<Option<Commit>>;

    async fn histories(&self, keys: Vec<AggregateKey>) -> Answers<ColdHistory>;

    async fn probes(&self, questions: Vec<ProbeQuestion>) -> Answers<Probe>;

    async fn aggregates(&self, pages: Vec<AggregatePage>) -> Answers<Vec<Commit>>;

    async fn partitions(&self, pages: Vec<PartitionPage>) -> Answers<Vec<Commit>>;

    async fn snapshots(&self, keys: Vec<AggregateKey>) -> Answers<Option<StoredSnapshot>>;

    async fn snapshot_versions(&self, keys: Vec<Vec<AggregateKey>>) -> Answers<Vec<Version>>;

    async fn heads(&self, partitions: Vec<Vec<PartitionNo>>) -> Answers<Vec<PartitionHead>>;

    async fn checkpoints(&self, questions: Vec<CheckpointQuestion>) -> Answers<Vec<Checkpoint>>;

    /// What the database itself finds wrong with its files, up to a bound.
    async fn damages(&self) -> Result<Vec<String>, StorageError>;

    /// Ends its connections.
    async fn close(&self);
}
