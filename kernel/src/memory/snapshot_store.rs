//! Snapshots in memory.

use async_trait::async_trait;

use super::{HashMap, MemoryStore};
use crate::commit::StoredSnapshot;
use crate::id::{AggregateKey, Version};
use crate::ports::{SnapshotStore, StorageError};

/// The newest snapshot of each aggregate.
#[derive(Default)]
pub(super) struct Snapshots {
    by_key: HashMap<AggregateKey, StoredSnapshot>,
}

/// What decides which of two snapshots is newer (R84).
fn age(snapshot: &StoredSnapshot) -> (Version, u32) {
    (snapshot.version, snapshot.state_revision)
}

impl Snapshots {
    fn save(&mut self, mut snapshot: StoredSnapshot) {
        let Some(stored) = self.by_key.get_mut(&snapshot.key) else {
            self.by_key.insert(snapshot.key.clone(), snapshot);
            return;
        };
        if age(&snapshot) > age(stored) {
            if snapshot.recent_requests.is_none() {
                snapshot.recent_requests = stored.recent_requests.take();
            }
            *stored = snapshot;
        }
    }

    pub(super) fn find(&self, key: &AggregateKey) -> Option<StoredSnapshot> {
        self.by_key.get(key).cloned()
    }

    fn version(&self, key: &AggregateKey) -> Version {
        self.by_key.get(key).map_or(0, |snapshot| snapshot.version)
    }
}

#[async_trait]
impl SnapshotStore for MemoryStore {
    async fn save(&self, mut snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError> {
        // Oldest first, so that the requests of an older one reach a newer one without any.
        snapshots.sort_by_key(age);
        let now = self.inner.clock.now();
        let mut stored = self.inner.snapshots.lock();
        for snapshot in snapshots {
            stored.save(StoredSnapshot {
                snapshot_time: now,
                ..snapshot
            });
        }
        Ok(())
    }

    async fn find(&self, key: &AggregateKey) -> Result<Option<StoredSnapshot>, StorageError> {
        Ok(self.inner.snapshots.lock().find(key))
    }

    async fn versions(&self, keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError> {
        let stored = self.inner.snapshots.lock();
        Ok(keys.iter().map(|key| stored.version(key)).collect())
    }
}
