//! Checkpoints in memory.

use std::collections::HashMap;

use async_trait::async_trait;

use super::MemoryStore;
use crate::id::PartitionNo;
use crate::ports::{Checkpoint, CheckpointStore, StorageError};

/// The checkpoints of every subscription.
#[derive(Default)]
pub(super) struct Checkpoints {
    by_subscription: HashMap<String, HashMap<PartitionNo, Checkpoint>>,
}

/// Whether a checkpoint may follow the one that is stored (R81).
fn follows(new: &Checkpoint, stored: &Checkpoint) -> bool {
    let forward = new.generation > stored.generation
        || new.generation == stored.generation && new.position >= stored.position;
    new.epoch >= stored.epoch && forward
}

#[async_trait]
impl CheckpointStore for MemoryStore {
    async fn load(
        &self,
        subscription: &str,
        partitions: &[PartitionNo],
    ) -> Result<Vec<Checkpoint>, StorageError> {
        let checkpoints = self.inner.checkpoints.lock();
        let Some(stored) = checkpoints.by_subscription.get(subscription) else {
            return Ok(Vec::new());
        };
        Ok(partitions
            .iter()
            .filter_map(|partition| stored.get(partition).cloned())
            .collect())
    }

    async fn save(&self, checkpoint: Checkpoint) -> Result<bool, StorageError> {
        let mut checkpoints = self.inner.checkpoints.lock();
        let stored = checkpoints
            .by_subscription
            .entry(checkpoint.subscription.clone())
            .or_default();
        if stored
            .get(&checkpoint.partition)
            .is_some_and(|stored| !follows(&checkpoint, stored))
        {
            return Ok(false);
        }
        stored.insert(checkpoint.partition, checkpoint);
        Ok(true)
    }
}
