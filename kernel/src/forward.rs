//! An admitted command on its way to the node that owns its partition, and what comes back (R21
//! to R23).
//!
//! A forwarded command is not admitted again: it carries all that admission has found out. What
//! it can't carry is its Rust type, so its body travels as JSON and is read by the owner's own
//! definition; an owner that doesn't know the type, or can't read the body, is not capable, and
//! the origin runs the command itself.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::access::Principal;
use crate::command::BuiltCommand;
use crate::error::CommandError;
use crate::id::{
    AggregateKey, CommandId, Identity, NodeName, OwnerId, RequestId, SpaceId, Version,
};
use crate::partition::KeyHash;
use crate::recent::RequestRecord;
use crate::registry::Registry;
use crate::wait::{FunctionInfo, Stage, WaitPlan};

/// A built command without its Rust types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForwardedCommand {
    /// Its id, and that of its commit.
    pub command_id: CommandId,
    /// Which aggregate.
    pub key: AggregateKey,
    /// For which owner.
    pub owner: OwnerId,
    /// In which space.
    pub space: SpaceId,
    /// The name of its type.
    pub command_type: String,
    /// Its body, as JSON.
    pub body: String,
    /// The request it belongs to.
    pub request_id: RequestId,
    /// Whether admission made the request id (R8).
    pub request_id_made: bool,
    /// Whether admission made the aggregate id (R12).
    pub aggregate_id_made: bool,
    /// The version the caller expects (R53).
    pub expected_version: Option<Version>,
    /// What its caller waits for.
    pub wait: WaitPlan,
    /// How long its caller still waits: clocks differ, durations don't.
    pub time_left: Duration,
    /// The commands that led to it (R30).
    pub chain: Vec<AggregateKey>,
    /// The node on which it was admitted, and where its caller waits.
    pub origin: NodeName,
    /// Headers, with the trace context among them.
    pub headers: Vec<(String, String)>,
    /// Who sent it.
    pub principal: Principal,
}

/// The node doesn't know a forwarded command's type, or can't read its body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a forwarded command can't be run here: {0}")]
pub struct NotCapable(pub String);

impl ForwardedCommand {
    /// A command on its way out, at a time of its origin's monotonic clock.
    ///
    /// # Errors
    /// [`NotCapable`] where its body can't be written as JSON.
    pub fn of(command: &BuiltCommand, now: Duration) -> Result<Self, NotCapable> {
        let body = command.definition.encode(&command.payload);
        Ok(Self {
            command_id: command.command_id,
            key: command.key().clone(),
            owner: command.identity.owner.clone(),
            space: command.identity.space.clone(),
            command_type: command.definition.name.to_string(),
            body: body.map_err(|error| NotCapable(error.to_string()))?,
            request_id: command.request_id.clone(),
            request_id_made: command.request_id_made,
            aggregate_id_made: command.aggregate_id_made,
            expected_version: command.expected_version,
            wait: command.wait.clone(),
            time_left: command.deadline.saturating_sub(now),
            chain: command.chain.to_vec(),
            origin: command.origin.clone(),
            headers: command
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            principal: command.principal.clone(),
        })
    }

    /// The command again, at a time of this node's monotonic clock.
    ///
    /// # Errors
    /// [`NotCapable`].
    pub fn into_command(
        self,
        registry: &Registry,
        now: Duration,
    ) -> Result<BuiltCommand, NotCapable> {
        let aggregate = registry
            .aggregate(&self.key.aggregate_type)
            .ok_or_else(|| NotCapable(format!("type {} is unknown", self.key.aggregate_type)))?;
        let definition = aggregate.command(&self.command_type).ok_or_else(|| {
            NotCapable(format!(
                "{} has no command '{}'",
                self.key.aggregate_type, self.command_type
            ))
        })?;
        let payload = definition.decode(self.body.as_bytes()).map_err(|fault| {
            NotCapable(format!("its body, at '{}': {}", fault.path, fault.reason))
        })?;
        Ok(BuiltCommand {
            command_id: self.command_id,
            key_hash: KeyHash::of(&self.key),
            identity: Identity {
                key: self.key,
                owner: self.owner,
                space: self.space,
            },
            aggregate: Arc::clone(aggregate),
            definition: Arc::clone(definition),
            payload,
            request_id: self.request_id,
            request_id_made: self.request_id_made,
            aggregate_id_made: self.aggregate_id_made,
            expected_version: self.expected_version,
            wait: self.wait,
            deadline: now.saturating_add(self.time_left),
            chain: self.chain.into(),
            origin: self.origin,
            headers: self.headers.into_iter().collect(),
            principal: self.principal,
        })
    }
}

/// What became of a forwarded command. Result maps are JSON objects as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ForwardedAnswer {
    /// It committed.
    Committed {
        /// The version it reached.
        version: Version,
        /// Its result map.
        result: Option<String>,
    },
    /// Its request had committed before (R40).
    Known {
        /// What the request committed.
        record: ForwardedRecord,
        /// To which aggregate.
        key: AggregateKey,
        /// Whether another command did.
        duplicate: bool,
    },
    /// It decided no events (R45).
    Unchanged {
        /// The version of the aggregate.
        version: Version,
        /// Its result map.
        result: Option<String>,
    },
    /// It failed; that is the answer, and no reason to run it elsewhere (R23).
    Failed(CommandError),
    /// Nobody knows: the lane that had it is gone (R22).
    Lost,
}

/// A [`RequestRecord`] on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForwardedRecord {
    request_id: RequestId,
    command_id: CommandId,
    version: Version,
    command_type: String,
    principal: String,
    owner: OwnerId,
    result: Option<String>,
}

/// A result map's text.
#[must_use]
pub fn result_text(result: Option<&RawValue>) -> Option<String> {
    result.map(|result| result.get().to_owned())
}

/// A result map from its text; none where it is no JSON, which no node sends.
#[must_use]
pub fn result_map(text: Option<String>) -> Option<Arc<RawValue>> {
    text.and_then(|text| RawValue::from_string(text).ok())
        .map(Arc::from)
}

impl From<&RequestRecord> for ForwardedRecord {
    fn from(record: &RequestRecord) -> Self {
        Self {
            request_id: record.request_id.clone(),
            command_id: record.command_id,
            version: record.version,
            command_type: record.command_type.to_string(),
            principal: record.principal.to_string(),
            owner: record.owner.clone(),
            result: result_text(record.result.as_deref()),
        }
    }
}

impl From<ForwardedRecord> for RequestRecord {
    fn from(record: ForwardedRecord) -> Self {
        Self {
            request_id: record.request_id,
            command_id: record.command_id,
            version: record.version,
            command_type: Arc::from(record.command_type),
            principal: Arc::from(record.principal),
            owner: record.owner,
            result: result_map(record.result),
        }
    }
}

/// A stage that a commit has reached, on its way to the node where its caller waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The command that committed.
    pub command_id: CommandId,
    /// The stage.
    pub stage: Stage,
    /// What has reached it.
    pub function: FunctionInfo,
    /// Why the handler failed, where it did.
    pub error: Option<CommandError>,
}
