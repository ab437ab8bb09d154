//! Snapshots: the newest known state of each aggregate.

use async_trait::async_trait;

use super::StorageError;
use crate::commit::StoredSnapshot;
use crate::id::{AggregateKey, Version};

/// Stores one snapshot for each aggregate.
#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// Writes snapshots, each only where it is newer than what is stored: a higher version, or
    /// the same version with a higher state revision (R84). All of them, or none. Several of one
    /// aggregate count as saved oldest first, in whatever order they come.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn save(&self, snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError>;

    /// The snapshot of an aggregate.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn find(&self, key: &AggregateKey) -> Result<Option<StoredSnapshot>, StorageError>;

    /// The versions that the snapshots of these aggregates hold, 0 where there is none; one
    /// query for all (R63).
    ///
    /// # Errors
    /// [`StorageError`].
    async fn versions(&self, keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError>;
}
