//! The log of commits.

use std::sync::Arc;

use async_trait::async_trait;

use super::{AppendError, StorageError};
use crate::commit::Commit;
use crate::id::{AggregateKey, EpochMillis, PartitionNo, Position, Version};

/// What the log gave an appended commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendReceipt {
    /// Its place in the partition.
    pub position: Position,
    /// When the log took it, by the log's clock.
    pub committed_at: EpochMillis,
}

/// The newest position of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionHead {
    /// The partition.
    pub partition: PartitionNo,
    /// Its newest position; 0 where it holds nothing.
    pub head: Position,
}

/// The append-only log. Its unique keys are (tenant, type, id, version) and
/// (tenant, type, request id) (R44); positions of a partition are contiguous from 1 and in
/// commit order (R80).
#[async_trait]
pub trait CommitLog: Send + Sync {
    /// Appends one commit, durably. `position` and `committed_at` of the commit are ignored.
    ///
    /// The commit must continue its aggregate: version n only where n − 1 is the newest, for
    /// that is what its caller decided on. A version that is taken is a conflict; one that
    /// would leave a gap is never asked for.
    ///
    /// # Errors
    /// [`AppendError`]. Where both keys are taken, either may be named.
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError>;

    /// The commits of an aggregate with versions in `after + 1 ..= up_to`, at most `limit`, oldest
    /// first. [`Version::MAX`] as `up_to` means all.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError>;

    /// The commits of a partition after a position, at most `limit`, oldest first.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn read_partition(
        &self,
        partition: PartitionNo,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError>;

    /// The heads of these partitions, one query for all.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError>;
}
