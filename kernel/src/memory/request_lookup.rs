//! The look-up of requests in memory: the second unique key of the log, read.

use async_trait::async_trait;

use super::MemoryStore;
use crate::commit::Commit;
use crate::id::{AggregateType, RequestId, TenantId};
use crate::ports::{RequestLookup, StorageError};

#[async_trait]
impl RequestLookup for MemoryStore {
    async fn find(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Result<Option<Commit>, StorageError> {
        let found = self
            .inner
            .log
            .lock()
            .request(tenant, aggregate_type, request_id);
        Ok(found.map(|found| found.into_commit()))
    }
}
