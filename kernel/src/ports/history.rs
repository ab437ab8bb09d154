//! The two reads of a lane, each one question to storage: a cold start, and a second look.

use async_trait::async_trait;

use super::StorageError;
use crate::commit::{Commit, StoredSnapshot};
use crate::id::{AggregateKey, RequestId, Version};
use crate::recent::RequestRecord;

/// What storage knows of an aggregate that no lane holds.
#[derive(Debug, Clone, Default)]
pub struct ColdHistory {
    /// Its snapshot, if there is one.
    pub snapshot: Option<StoredSnapshot>,
    /// The requests of the commits up to the snapshot that its stored set may not hold: those of
    /// the versions in [`crate::recent::unwritten`] of the snapshot's version, oldest first. A
    /// snapshot whose own version is not among them is ahead of the log, and ignored (R50).
    pub requests: Vec<RequestRecord>,
    /// The commits after the snapshot, oldest first, up to a page.
    pub tail: Vec<Commit>,
    /// Whether more commits follow the tail.
    pub has_more: bool,
}

/// What a second look found (R58).
#[derive(Debug, Clone, Default)]
pub struct Probe {
    /// The aggregate's newest version; 0 where it has none.
    pub newest_version: Version,
    /// The commit of the request, where one was asked for and is there.
    pub request: Option<Commit>,
}

/// Reads about one aggregate. Adapters batch those of many lanes into one query.
#[async_trait]
pub trait History: Send + Sync {
    /// Snapshot and the commits after it.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError>;

    /// The newest version, and the commit of a request of the same tenant and type.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn probe(
        &self,
        key: &AggregateKey,
        request_id: Option<&RequestId>,
    ) -> Result<Probe, StorageError>;
}
