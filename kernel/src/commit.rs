//! A commit: one entry of the log, and what is derived from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::{
    AggregateKey, CommandId, EpochMillis, Identity, NodeName, OwnerId, PartitionNo, Position,
    RequestId, SpaceId, Version,
};
use crate::registry::ErasedState;

/// An event as the log stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Its declared name.
    pub name: Arc<str>,
    /// The revision of its body.
    pub revision: u32,
    /// Its body.
    pub body: Box<RawValue>,
}

/// The headers that carry a trace through everything a request leads to (spec/03).
pub const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];

/// Headers kept with a command and its commit.
pub type Headers = BTreeMap<String, String>;

/// One entry of the log: version n of one aggregate.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The partition, by hash of the key.
    pub partition: PartitionNo,
    /// The place in it; 0 until the log has given one.
    pub position: Position,
    /// Which aggregate.
    pub key: AggregateKey,
    /// The version it reached.
    pub version: Version,
    /// The request that caused it; unique per tenant and type.
    pub request_id: RequestId,
    /// The command that caused it.
    pub command_id: CommandId,
    /// That command's type.
    pub command_type: Arc<str>,
    /// The subject that sent it; empty for an anonymous caller.
    pub principal: Arc<str>,
    /// The owner it was sent for.
    pub owner: OwnerId,
    /// The space it was sent in.
    pub space: SpaceId,
    /// The node on which it was admitted.
    pub origin: NodeName,
    /// What happened, in order.
    pub events: Arc<[RecordedEvent]>,
    /// The result map, a JSON object, where the command gave one.
    pub result: Option<Arc<RawValue>>,
    /// Headers, with the trace context among them.
    pub headers: Headers,
    /// When the log took it; 0 until then.
    pub committed_at: EpochMillis,
}

impl Commit {
    /// The identity the commit was made for.
    pub fn identity(&self) -> Identity {
        Identity {
            key: self.key.clone(),
            owner: self.owner.clone(),
            space: self.space.clone(),
        }
    }

    /// Roughly how many bytes its row takes; what `log.max-entry-bytes` bounds.
    pub fn entry_bytes(&self) -> usize {
        let events: usize = self
            .events
            .iter()
            .map(|event| event.name.len() + event.body.get().len() + 32)
            .sum();
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        events + headers + self.result.as_ref().map_or(0, |result| result.get().len())
    }
}

/// The facts about an aggregate that are the system's, not the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateFacts {
    /// Who owns it.
    pub owner: OwnerId,
    /// Where it lies.
    pub space: SpaceId,
    /// Whether it is deleted (R11).
    pub deleted: bool,
    /// Its tags.
    pub tags: BTreeMap<String, Vec<String>>,
    /// The subject of its first commit.
    pub first_operator: Arc<str>,
    /// The subject of its newest commit.
    pub operator: Arc<str>,
    /// When it was created.
    pub first_event_time: EpochMillis,
    /// When it last changed.
    pub event_time: EpochMillis,
    /// The command id of its newest commit, which names the commit's events.
    pub event_id: Option<CommandId>,
}

impl Default for AggregateFacts {
    fn default() -> Self {
        Self {
            owner: OwnerId::none(),
            space: SpaceId::none(),
            deleted: false,
            tags: BTreeMap::new(),
            first_operator: Arc::from(""),
            operator: Arc::from(""),
            first_event_time: 0,
            event_time: 0,
            event_id: None,
        }
    }
}

/// A commit and the state after it: what the executing node hands to subscriptions (R55).
#[derive(Debug, Clone)]
pub struct StateView {
    /// The commit.
    pub commit: Arc<Commit>,
    /// The state after it.
    pub state: ErasedState,
    /// The system's facts after it.
    pub facts: Arc<AggregateFacts>,
    /// The recent requests up to it as a snapshot stores them, at every
    /// [`crate::recent::WRITTEN_EVERY`]th version; otherwise the stored ones stay.
    pub recent_requests: Option<Arc<str>>,
}

/// A snapshot as storage holds it. State and requests stay text until somebody needs them, so
/// that the revision is judged before anything is decoded (field report 63).
#[derive(Debug, Clone)]
pub struct StoredSnapshot {
    /// Which aggregate.
    pub key: AggregateKey,
    /// The version it holds.
    pub version: Version,
    /// The partition of its newest commit.
    pub partition: PartitionNo,
    /// That commit's position.
    pub position: Position,
    /// The system's facts.
    pub facts: AggregateFacts,
    /// The state as JSON.
    pub state: String,
    /// The revision of state and `evolve` that wrote it.
    pub state_revision: u32,
    /// The recent requests as JSON. Saving none leaves those that are stored.
    pub recent_requests: Option<Arc<str>>,
    /// When it was written; 0 until storage has written it.
    pub snapshot_time: EpochMillis,
}
