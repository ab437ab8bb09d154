//! A user's own say in who may do what (R4).

use async_trait::async_trait;

use crate::access::{AccessError, AccessMode, Principal, judge};
use crate::id::Identity;
use crate::model::AccessRule;

/// Decides whether a caller may send a command or read an aggregate. It sees the identity that
/// was asked for, never whether that aggregate exists.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Judges one request; the default judges the declared rule alone.
    ///
    /// # Errors
    /// [`AccessError`] refuses.
    async fn authorize(
        &self,
        mode: AccessMode,
        rule: AccessRule,
        principal: &Principal,
        identity: &Identity,
    ) -> Result<(), AccessError> {
        judge(mode, rule, principal, identity)
    }
}
