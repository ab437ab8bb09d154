//! How far each subscription has come in each partition.

use async_trait::async_trait;

use super::StorageError;
use crate::id::{PartitionNo, Position};

/// The progress of one subscription in one partition (R81).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which subscription.
    pub subscription: String,
    /// Which partition.
    pub partition: PartitionNo,
    /// The last position it has handled, with all before.
    pub position: Position,
    /// The epoch of the lease under which it runs.
    pub epoch: u64,
    /// Raised by a replay.
    pub generation: u64,
}

/// Stores checkpoints.
#[async_trait]
pub trait CheckpointStore: Send + Sync {
    /// The checkpoints of a subscription in these partitions; those that never saved are absent.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn load(
        &self,
        subscription: &str,
        partitions: &[PartitionNo],
    ) -> Result<Vec<Checkpoint>, StorageError>;

    /// Moves a checkpoint forward. Answers `false`, and changes nothing, where what is stored
    /// has a higher epoch or generation, or the same generation and a later position: then the
    /// runner has lost its place and stops. A higher generation may set any position (R81).
    ///
    /// # Errors
    /// [`StorageError`].
    async fn save(&self, checkpoint: Checkpoint) -> Result<bool, StorageError>;
}
