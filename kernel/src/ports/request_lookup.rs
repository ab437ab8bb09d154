//! Finding what a request id has committed.

use async_trait::async_trait;

use super::StorageError;
use crate::commit::Commit;
use crate::id::{AggregateType, RequestId, TenantId};

/// Looks requests up in the log (R12, R40). Adapters batch the questions of many lanes (R42).
#[async_trait]
pub trait RequestLookup: Send + Sync {
    /// The commit that a request id made for this tenant and type, if it made one.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn find(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Result<Option<Commit>, StorageError>;
}
