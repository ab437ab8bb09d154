//! The commands that every aggregate type has unless it brings its own: delete, recover, tags,
//! and the transfer to another owner or space. Their events change the system's facts about an
//! aggregate, never the user's state.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::aggregate::ErasedState;
use super::command::{CommandDefinition, DecideFault, DecideOutcome, Decided, typed_payload};
use crate::command::Payload;
use crate::commit::{AggregateFacts, RecordedEvent};
use crate::id::{OwnerId, SpaceId};
use crate::model::{
    AccessRule, BindingError, Command, CommandSpec, EventFault, Method, OwnerPolicy, Purity, Route,
};

pub(crate) const DELETED: &str = "aggregate_deleted";
const RECOVERED: &str = "aggregate_recovered";
const TAGS_APPLIED: &str = "resource_tags_applied";
const OWNER_TRANSFERRED: &str = "owner_transferred";
const SPACE_TRANSFERRED: &str = "space_transferred";

/// The names of the system's own events; no aggregate type may use them.
pub const BUILTIN_EVENTS: [&str; 5] = [
    DELETED,
    RECOVERED,
    TAGS_APPLIED,
    OWNER_TRANSFERRED,
    SPACE_TRANSFERRED,
];

/// One of the system's own events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemEvent {
    /// The aggregate is deleted.
    Deleted,
    /// It is back.
    Recovered,
    /// It has these tags now.
    TagsApplied(BTreeMap<String, Vec<String>>),
    /// It has another owner.
    OwnerTransferred(OwnerId),
    /// It lies in another space.
    SpaceTransferred(SpaceId),
}

impl SystemEvent {
    /// Reads a stored event, if it is one of the system's own.
    ///
    /// # Errors
    /// [`EventFault`] when it is, and can't be read.
    pub fn read(event: &RecordedEvent) -> Result<Option<Self>, EventFault> {
        Ok(Some(match &*event.name {
            DELETED => Self::Deleted,
            RECOVERED => Self::Recovered,
            TAGS_APPLIED => Self::TagsApplied(body::<ApplyResourceTags>(event)?.tags),
            OWNER_TRANSFERRED => {
                Self::OwnerTransferred(OwnerId::trusted(body::<TransferOwner>(event)?.to_owner_id))
            }
            SPACE_TRANSFERRED => {
                Self::SpaceTransferred(SpaceId::trusted(body::<TransferSpace>(event)?.to_space_id))
            }
            _ => return Ok(None),
        }))
    }

    /// Changes the facts.
    pub fn apply(self, facts: &mut AggregateFacts) {
        match self {
            Self::Deleted => facts.deleted = true,
            Self::Recovered => facts.deleted = false,
            Self::TagsApplied(tags) => facts.tags = tags,
            Self::OwnerTransferred(owner) => facts.owner = owner,
            Self::SpaceTransferred(space) => facts.space = space,
        }
    }
}

fn body<T: DeserializeOwned>(event: &RecordedEvent) -> Result<T, EventFault> {
    serde_json::from_str(event.body.get()).map_err(|error| EventFault::Body {
        name: event.name.to_string(),
        reason: error.to_string(),
    })
}

/// Deletes the aggregate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct DeleteAggregate {}

/// Brings a deleted aggregate back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct RecoverAggregate {}

/// Replaces the aggregate's tags.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct ApplyResourceTags {
    tags: BTreeMap<String, Vec<String>>,
}

/// Gives the aggregate to another owner.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TransferOwner {
    to_owner_id: String,
}

/// Moves the aggregate to another space.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TransferSpace {
    to_space_id: String,
}

fn spec(name: &'static str, method: Method, action: &'static str) -> CommandSpec {
    CommandSpec {
        purity: Purity::Pure,
        route: Route { method, action },
        builtin: true,
        ..CommandSpec::new(name)
    }
}

impl Command for DeleteAggregate {
    fn spec() -> CommandSpec {
        let spec = spec("delete_aggregate", Method::Delete, "");
        CommandSpec {
            empty_body: Some("{}"),
            ..spec
        }
    }
}

impl Command for RecoverAggregate {
    fn spec() -> CommandSpec {
        let spec = spec("recover_aggregate", Method::Put, "recover");
        CommandSpec {
            empty_body: Some("{}"),
            recovers: true,
            ..spec
        }
    }
}

impl Command for ApplyResourceTags {
    fn spec() -> CommandSpec {
        spec("apply_resource_tags", Method::Put, "tags")
    }
}

impl Command for TransferOwner {
    fn spec() -> CommandSpec {
        let spec = spec("transfer_owner", Method::Put, "owner");
        CommandSpec {
            access: AccessRule::Owner,
            ..spec
        }
    }

    fn validate(&self) -> Vec<BindingError> {
        fault("toOwnerId", OwnerId::parse(&self.to_owner_id).err())
    }
}

impl Command for TransferSpace {
    fn spec() -> CommandSpec {
        let spec = spec("transfer_space", Method::Put, "space");
        CommandSpec {
            access: AccessRule::Owner,
            ..spec
        }
    }

    fn validate(&self) -> Vec<BindingError> {
        fault("toSpaceId", SpaceId::parse(&self.to_space_id).err())
    }
}

fn fault(field: &str, fault: Option<crate::id::IdFault>) -> Vec<BindingError> {
    fault
        .map(|fault| BindingError::new(field, fault.to_string()))
        .into_iter()
        .collect()
}

/// A built-in command: its own body is the body of the one event it commits.
trait Builtin: Command {
    const EVENT: &'static str;
}

impl Builtin for DeleteAggregate {
    const EVENT: &'static str = DELETED;
}

impl Builtin for RecoverAggregate {
    const EVENT: &'static str = RECOVERED;
}

impl Builtin for ApplyResourceTags {
    const EVENT: &'static str = TAGS_APPLIED;
}

impl Builtin for TransferOwner {
    const EVENT: &'static str = OWNER_TRANSFERRED;
}

impl Builtin for TransferSpace {
    const EVENT: &'static str = SPACE_TRANSFERRED;
}

/// The built-in commands of a type; only one with owners of its own can give them away.
pub(super) fn commands(owner: OwnerPolicy) -> Vec<CommandDefinition> {
    let mut all = vec![
        definition::<DeleteAggregate>(),
        definition::<RecoverAggregate>(),
        definition::<ApplyResourceTags>(),
        definition::<TransferSpace>(),
    ];
    if owner == OwnerPolicy::Always {
        all.push(definition::<TransferOwner>());
    }
    all
}

fn definition<C: Builtin>() -> CommandDefinition {
    CommandDefinition::with_decide::<C>(C::spec(), |state, payload, _context| {
        std::future::ready(decide::<C>(state, &payload)).boxed()
    })
}

fn decide<C: Builtin>(state: ErasedState, payload: &Payload) -> DecideOutcome {
    let body = serde_json::value::to_raw_value(typed_payload::<C>(payload))
        .map_err(|error| DecideFault::Unwritable(error.to_string()))?;
    let event = RecordedEvent {
        name: Arc::from(C::EVENT),
        revision: 1,
        body,
    };
    Ok(Decided {
        events: Arc::new([event]),
        state,
        result: None,
    })
}
