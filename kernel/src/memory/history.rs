//! An aggregate's history in memory: its snapshot, and what the log holds after it.

use async_trait::async_trait;

use super::MemoryStore;
use super::commit_log::into_commits;
use crate::id::{AggregateKey, RequestId};
use crate::ports::{ColdHistory, History, Probe, StorageError};
use crate::recent::{RequestRecord, unwritten};

/// How many commits a cold history brings along at once.
const TAIL_PAGE: usize = 256;

#[async_trait]
impl History for MemoryStore {
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        // The snapshot first: what is committed between the two looks is then in the tail.
        let snapshot = self.inner.snapshots.lock().find(key);
        let version = snapshot.as_ref().map_or(0, |snapshot| snapshot.version);
        let unwritten = unwritten(version);

        let (requests, tail, newest) = {
            let log = self.inner.log.lock();
            let before = unwritten.start() - 1;
            let requests: Vec<_> = log
                .aggregate(key, before, *unwritten.end(), usize::MAX)
                .iter()
                .map(|found| RequestRecord::from(found.as_written()))
                .collect();
            let tail = log.aggregate(key, version, u64::MAX, TAIL_PAGE);
            (requests, tail, log.newest_version(key))
        };

        let tail = into_commits(tail);
        let has_more = tail.last().is_some_and(|commit| commit.version < newest);
        Ok(ColdHistory {
            snapshot,
            requests,
            tail,
            has_more,
        })
    }

    async fn probe(
        &self,
        key: &AggregateKey,
        request_id: Option<&RequestId>,
    ) -> Result<Probe, StorageError> {
        let (newest_version, request) = {
            let log = self.inner.log.lock();
            let request = request_id
                .and_then(|request_id| log.request(&key.tenant, &key.aggregate_type, request_id));
            (log.newest_version(key), request)
        };
        Ok(Probe {
            newest_version,
            request: request.map(|found| found.into_commit()),
        })
    }
}
