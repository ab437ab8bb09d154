//! Who calls, and whether they may (R4). Verifying a token is the edge's work; this page only
//! judges what a verified caller may do.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::Identity;
use crate::model::{AccessRule, OwnerPolicy};

/// The role of other services: it may act for any tenant and owner.
pub const SERVICE_ROLE: &str = "service";

/// How callers are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    /// Identity headers are believed; for loopback and closed networks.
    Open,
    /// Callers prove who they are with a token.
    Jwt,
}

/// A caller: anonymous where it has no subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// Whom the token names; none for an anonymous caller.
    pub subject: Option<Arc<str>>,
    /// The tenant the token is for.
    pub tenant: Option<Arc<str>>,
    /// The space the token is for.
    pub space: Option<Arc<str>>,
    /// Its roles.
    pub roles: Vec<Arc<str>>,
}

impl Principal {
    /// A caller that proved nothing.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The system's own sagas, and other services.
    pub fn service(name: &str) -> Self {
        Self {
            subject: Some(Arc::from(name)),
            roles: vec![Arc::from(SERVICE_ROLE)],
            ..Self::default()
        }
    }

    /// The subject as the log stores it; empty for an anonymous caller.
    pub fn subject_text(&self) -> &str {
        self.subject.as_deref().unwrap_or("")
    }

    /// Whether it has the role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|own| &**own == role)
    }

    /// Whether it may act for any tenant and owner.
    pub fn is_service(&self) -> bool {
        self.has_role(SERVICE_ROLE)
    }
}

/// Why a caller may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// It has to say who it is first.
    #[error("this needs an authenticated caller")]
    Unauthenticated,
    /// It is known, and may not.
    #[error("the caller may not do this")]
    Denied,
}

/// Judges a rule for a caller (R4). It looks at nothing but its arguments, so the answer can't
/// depend on whether the aggregate exists.
///
/// # Errors
/// [`AccessError::Unauthenticated`] for an anonymous caller that a known one might differ from,
/// [`AccessError::Denied`] otherwise.
pub fn judge(
    mode: AccessMode,
    rule: AccessRule,
    principal: &Principal,
    identity: &Identity,
) -> Result<(), AccessError> {
    if principal.is_service() {
        return Ok(());
    }
    let known = principal.subject.is_some();
    let allowed = match (rule, mode) {
        (AccessRule::Public, _) | (AccessRule::Default, AccessMode::Open) => return Ok(()),
        // In open mode the identity headers are believed, so whoever names the owner is it.
        (AccessRule::Owner, AccessMode::Open) => return Ok(()),
        (AccessRule::Default | AccessRule::Authenticated, _) => known,
        (AccessRule::Roles(roles), _) => roles.iter().any(|role| principal.has_role(role)),
        (AccessRule::Owner, AccessMode::Jwt) => {
            known && principal.subject_text() == identity.owner.as_str()
        }
        (AccessRule::Policy(policy), _) => policy(principal, identity),
    };
    if allowed {
        Ok(())
    } else if known {
        Err(AccessError::Denied)
    } else {
        Err(AccessError::Unauthenticated)
    }
}

/// Refuses the owner's rule where the type has no owners: nobody is the owner of what has none,
/// whatever owner a request names. Services may, and in open mode whoever asks.
///
/// # Errors
/// As [`judge`].
pub(crate) fn check_has_owners(
    mode: AccessMode,
    rule: AccessRule,
    policy: OwnerPolicy,
    principal: &Principal,
) -> Result<(), AccessError> {
    let is_unowned = matches!(rule, AccessRule::Owner) && policy == OwnerPolicy::Never;
    if !is_unowned || mode == AccessMode::Open || principal.is_service() {
        Ok(())
    } else if principal.subject.is_some() {
        Err(AccessError::Denied)
    } else {
        Err(AccessError::Unauthenticated)
    }
}
