//! How the ports know their callers, and whether the node is ready.

use std::sync::Arc;

use async_trait::async_trait;
use wow_actors::Handle;
use wow_kernel::access::Principal;
use wow_kernel::error::CommandError;

use super::health::StorageHealth;
use crate::access::Verifier;
use crate::admin::Readiness;
use crate::http::Authenticator;

/// Callers are believed.
pub(super) struct OpenAccess;

/// Callers prove who they are.
pub(super) struct TokenAccess(pub(super) Verifier);

/// The node's readiness: it runs what it owns, on storage that works.
pub(super) struct NodeReadiness {
    pub(super) handle: Handle,
    pub(super) health: Arc<StorageHealth>,
}

impl Readiness for NodeReadiness {
    fn is_ready(&self) -> bool {
        self.handle.is_ready() && self.health.is_usable()
    }
}

#[async_trait]
impl Authenticator for OpenAccess {
    async fn authenticate(&self, _bearer: Option<&str>) -> Result<Principal, CommandError> {
        Ok(Principal::anonymous())
    }
}

#[async_trait]
impl Authenticator for TokenAccess {
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Principal, CommandError> {
        let Some(token) = bearer else {
            return Ok(Principal::anonymous());
        };
        self.0.verify(token).await.map_err(|error| {
            tracing::debug!(%error, "token refused");
            CommandError::Unauthenticated
        })
    }
}
