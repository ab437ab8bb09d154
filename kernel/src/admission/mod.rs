//! Admission: turns a request into a command that the kernel can trust (R1 to R13).
//!
//! The steps run in order and the first that fails answers: type, identity, access, decode and
//! validate, transform, build. Every entry point comes through here.

use std::sync::Arc;

use crate::access::{AccessMode, Principal};
use crate::command::BuiltCommand;
use crate::error::CommandError;
use crate::id::{Identity, NodeName};
use crate::ports::{Authorizer, Clock, Random, RequestLookup};
use crate::registry::Registry;
use crate::submission::Submission;

/// What a transformer sees beside the command (R6).
#[derive(Debug)]
pub struct TransformContext<'a> {
    /// The command's identity, which a transformer must not change.
    pub identity: &'a Identity,
    /// Who sends it.
    pub principal: &'a Principal,
}

/// The bounds of admission.
#[derive(Debug, Clone)]
pub struct AdmissionLimits {
    /// The largest body, in bytes (R5).
    pub body_bytes_max: usize,
    /// The longest wait a caller may ask for.
    pub wait_timeout_max: std::time::Duration,
}

/// The admission of one node.
#[allow(missing_debug_implementations)]
pub struct Admission {
    /// The types it knows.
    pub registry: Arc<Registry>,
    /// How callers are known.
    pub mode: AccessMode,
    /// The user's own say.
    pub authorizer: Arc<dyn Authorizer>,
    /// Finds what a retried creation committed (R12).
    pub requests: Arc<dyn RequestLookup>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub random: Arc<dyn Random>,
    /// The node, as the origin of what it admits.
    pub node: NodeName,
    /// Bounds.
    pub limits: AdmissionLimits,
}

impl Admission {
    /// Admits a request.
    ///
    /// # Errors
    /// What the first failing step answers.
    pub async fn admit(&self, _submission: Submission) -> Result<BuiltCommand, CommandError> {
        Err(CommandError::Internal)
    }
}
