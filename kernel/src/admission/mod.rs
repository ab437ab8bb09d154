//! Admission: turns a request into a command that the kernel can trust (R1 to R13).
//!
//! The steps run in order and the first that fails answers: type, identity, access, decode and
//! validate, transform, build. Every entry point comes through here.

mod body;
mod build;
pub(crate) mod identity;
mod json;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use crate::access::{AccessMode, Principal, check_has_owners};
use crate::command::{BuiltCommand, Payload};
use crate::error::CommandError;
use crate::id::{AggregateId, Identity, NodeName};
use crate::model::CreationRule;
use crate::ports::{Authorizer, Clock, Random, RequestLookup};
use crate::registry::{AggregateDefinition, CommandDefinition, Registry, Resolved};
use crate::submission::{Body, Submission};

pub use build::{HEADER_BYTES_MAX, HEADERS_MAX};

/// What a transformer sees beside the command (R6).
#[derive(Debug)]
pub struct TransformContext<'a> {
    /// The command's identity, which a transformer must not change. The id of a creation that
    /// came without one is still empty here: the build step makes it (R12).
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
    pub wait_timeout_max: Duration,
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
    /// What the first failing step answers (R1).
    pub async fn admit(
        &self,
        submission: impl Into<Box<Submission>>,
    ) -> Result<Arc<BuiltCommand>, CommandError> {
        self.admit_arrived(submission.into(), self.clock.monotonic())
            .await
    }

    /// Admits a request that arrived at a time of the node's monotonic clock: its deadline counts
    /// from there. It is boxed, for it is large and passes through every step.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub async fn admit_arrived(
        &self,
        submission: Box<Submission>,
        arrived: Duration,
    ) -> Result<Arc<BuiltCommand>, CommandError> {
        let resolved = self.registry.resolve(&submission.target)?;
        // Policies, decoders, validations and transformers are users' code, and one that panics
        // fails its own command only (R32).
        let steps = pin!(self.run_steps(submission, &resolved, arrived));
        let admitted = AssertUnwindSafe(steps).catch_unwind().await;
        admitted.unwrap_or_else(|_| {
            let (_, definition) = &resolved;
            tracing::error!(command_type = %definition.name, "user code panicked during admission");
            Err(CommandError::Panicked)
        })
    }

    async fn run_steps(
        &self,
        submission: Box<Submission>,
        resolved: &Resolved,
        arrived: Duration,
    ) -> Result<Arc<BuiltCommand>, CommandError> {
        let (aggregate, definition) = resolved;
        check_payload_type(&submission.body, definition)?;
        let mut identity = self.identify(&submission, aggregate, definition)?;
        let principal = &submission.principal;
        let rule = definition.spec.access;
        check_has_owners(self.mode, rule, aggregate.spec.owner, principal)?;
        self.authorizer
            .authorize(self.mode, rule, principal, &identity)
            .await?;
        let payload = self.payload(&submission, definition, &identity)?;
        let mut ids = self.ids(&submission)?;
        if identity.key.id.is_empty() {
            let asked = self.created_before(&identity, definition, &ids, principal);
            let reused = asked.await?;
            ids.aggregate_id_made = reused.is_none();
            identity.key.id = reused.unwrap_or_else(|| AggregateId::trusted(self.new_id()));
        }
        build::build(self, submission, resolved, identity, payload, ids, arrived)
    }

    /// The command's body, read, checked and transformed (R5, R6).
    fn payload(
        &self,
        submission: &Submission,
        definition: &CommandDefinition,
        identity: &Identity,
    ) -> Result<Payload, CommandError> {
        let payload = body::read(
            &submission.body,
            &submission.variables,
            definition,
            self.limits.body_bytes_max,
        )?;
        check_decoded_id(&submission.body, definition, &payload, identity)?;
        transform(payload, definition, identity, &submission.principal)
    }

    fn identify(
        &self,
        submission: &Submission,
        aggregate: &AggregateDefinition,
        definition: &CommandDefinition,
    ) -> Result<Identity, CommandError> {
        identity::resolve(&identity::Request {
            aggregate,
            rule: definition.spec.access,
            mode: self.mode,
            principal: &submission.principal,
            facts: &submission.facts,
            marked: body::marked_id(&submission.body, definition, self.limits.body_bytes_max),
            marked_variable: body::marked_variable(&submission.variables, &definition.spec),
            may_lack_id: may_lack_id(definition),
        })
    }
}

/// Whether a command of this type gets an id from admission when it has none (R12).
fn may_lack_id(definition: &CommandDefinition) -> bool {
    match definition.spec.creation {
        CreationRule::Creates | CreationRule::Upserts => true,
        CreationRule::Updates => false,
    }
}

/// A command of the process's own has to be of the type under which it is sent.
fn check_payload_type(body: &Body, definition: &CommandDefinition) -> Result<(), CommandError> {
    match body {
        Body::Typed(payload) if (**payload).type_id() != definition.payload_type => {
            tracing::error!(command_type = %definition.name, "the payload is of another type");
            Err(CommandError::Internal)
        }
        Body::Typed(_) | Body::Json(_) => Ok(()),
    }
}

/// The identity step has read the marked field from the raw body. What the decoder made of it
/// must be the same: a default or another spelling would let two ids stand for one aggregate.
fn check_decoded_id(
    body: &Body,
    definition: &CommandDefinition,
    payload: &Payload,
    identity: &Identity,
) -> Result<(), CommandError> {
    if matches!(body, Body::Typed(_)) {
        return Ok(());
    }
    let id = identity.key.id.as_str();
    match definition.aggregate_id(payload) {
        Some(decoded) if !decoded.is_empty() && decoded != id => {
            Err(identity::id_changed_by_decoding())
        }
        _ if id.is_empty() && !may_lack_id(definition) => Err(identity::id_missing()),
        _ => Ok(()),
    }
}

/// Lets the registered transformers rewrite the command, in order (R6).
fn transform(
    payload: Payload,
    definition: &CommandDefinition,
    identity: &Identity,
    principal: &Principal,
) -> Result<Payload, CommandError> {
    if definition.transformers.is_empty() {
        return Ok(payload);
    }
    let id_before = definition.aggregate_id(&payload);
    let context = TransformContext {
        identity,
        principal,
    };
    let mut transformed = payload;
    for (index, transformer) in definition.transformers.iter().enumerate() {
        transformed = transformer(transformed, &context)?;
        if definition.aggregate_id(&transformed) != id_before {
            tracing::error!(
                command_type = %definition.name,
                transformer = index,
                "a transformer changed the field that names the aggregate"
            );
            return Err(CommandError::TransformerIdentity);
        }
    }
    Ok(transformed)
}
