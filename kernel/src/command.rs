//! The built command: what admission makes of a request, and what nothing changes afterwards (R7).

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::access::Principal;
use crate::commit::Headers;
use crate::id::{AggregateKey, CommandId, Identity, NodeName, RequestId, Version};
use crate::partition::KeyHash;
use crate::registry::{AggregateDefinition, CommandDefinition};
use crate::wait::WaitPlan;

/// The longest chain of commands that send commands (spec/08).
pub const CHAIN_DEPTH_MAX: usize = 32;

/// The decoded body of a command, its type erased.
pub type Payload = Arc<dyn Any + Send + Sync>;

/// The aggregates whose commands, still running, led to a command (R30). Innermost last.
///
/// Nearly all commands come from outside, and their empty chain takes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallChain(Option<Arc<[AggregateKey]>>);

impl Deref for CallChain {
    type Target = [AggregateKey];

    fn deref(&self) -> &[AggregateKey] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl From<Vec<AggregateKey>> for CallChain {
    fn from(keys: Vec<AggregateKey>) -> Self {
        Self((!keys.is_empty()).then(|| keys.into()))
    }
}

impl FromIterator<AggregateKey> for CallChain {
    fn from_iter<I: IntoIterator<Item = AggregateKey>>(keys: I) -> Self {
        Vec::from_iter(keys).into()
    }
}

/// A command that admission has built. It has no interior mutability and is shared by `Arc` (R7).
#[derive(Clone)]
pub struct BuiltCommand {
    /// Its id, and that of its commit.
    pub command_id: CommandId,
    /// Which aggregate, for which owner, in which space.
    pub identity: Identity,
    /// The hash of its key, which says where the aggregate is placed.
    pub key_hash: KeyHash,
    /// The aggregate's type.
    pub aggregate: Arc<AggregateDefinition>,
    /// Its own type.
    pub definition: Arc<CommandDefinition>,
    /// The decoded body.
    pub payload: Payload,
    /// The request it belongs to.
    pub request_id: RequestId,
    /// Whether admission made the request id, so that it can't have committed before (R8).
    pub request_id_made: bool,
    /// Whether admission made the aggregate id, so that it can't exist yet (R12).
    pub aggregate_id_made: bool,
    /// The version the caller expects (R53).
    pub expected_version: Option<Version>,
    /// What its caller waits for.
    pub wait: WaitPlan,
    /// When its caller stops waiting, on the monotonic clock of the node that runs it.
    pub deadline: std::time::Duration,
    /// The commands that led to it.
    pub chain: CallChain,
    /// The node on which it was admitted.
    pub origin: NodeName,
    /// Headers, with the trace context among them.
    pub headers: Headers,
    /// Who sent it.
    pub principal: Principal,
}

impl BuiltCommand {
    /// Which aggregate.
    pub fn key(&self) -> &AggregateKey {
        &self.identity.key
    }

    /// The name of its type.
    pub fn command_type(&self) -> &Arc<str> {
        &self.definition.name
    }
}

impl fmt::Debug for BuiltCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltCommand")
            .field("command_id", &self.command_id)
            .field("command_type", &self.definition.name)
            .field("key", self.key())
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}
