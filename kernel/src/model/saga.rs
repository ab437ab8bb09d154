//! Sagas: an entry of the log in, commands out. Stateless and pure (R83).

use std::fmt;
use std::sync::Arc;

use super::{Aggregate, Command, CommandSpec, Evolve};
use crate::command::Payload;
use crate::error::CommandError;
use crate::id::{EpochMillis, Identity, Position, Version};

/// Follows one aggregate type and sends commands for what it sees.
///
/// The handler is a pure function of event, entry and state: after a crash an entry is handled
/// again, and the commands it sends must be the same ones, in the same order (R83).
pub trait Saga: Send + Sync + 'static {
    /// The type it follows.
    type Aggregate: Aggregate;

    /// Its name: at most 48 characters, unique for ever, for its checkpoint carries it.
    const NAME: &'static str;

    /// The commands to send for one event, in order.
    fn handle(
        &self,
        event: &<Self::Aggregate as Evolve>::Event,
        entry: &SagaEntry<'_, Self::Aggregate>,
    ) -> Vec<SagaCommand>;

    /// The commands to send when one of its commands was refused for good.
    /// `None` says that this saga has no answer: the refusal is logged and counted.
    fn on_rejected(
        &self,
        _event: &<Self::Aggregate as Evolve>::Event,
        _entry: &SagaEntry<'_, Self::Aggregate>,
        _rejected: &RejectedCommand<'_>,
    ) -> Option<Vec<SagaCommand>> {
        None
    }
}

/// The entry that a saga handles, and the state after it.
#[derive(Debug)]
pub struct SagaEntry<'a, A> {
    /// Which aggregate committed.
    pub identity: &'a Identity,
    /// The version it reached.
    pub version: Version,
    /// Where the entry lies in its partition.
    pub position: Position,
    /// When it was committed.
    pub committed_at: EpochMillis,
    /// The state after it.
    pub state: &'a A,
}

/// One of a saga's commands that was refused for good.
#[derive(Debug)]
pub struct RejectedCommand<'a> {
    /// Its place among the commands of its event.
    pub index: usize,
    /// Why it was refused.
    pub error: &'a CommandError,
}

/// A command that a saga sends. Tenant and space, and for a type with owners the owner, are the
/// event's unless set.
#[derive(Clone)]
pub struct SagaCommand {
    pub(crate) payload: Payload,
    pub(crate) payload_type: std::any::TypeId,
    pub(crate) aggregate_id: Option<String>,
    pub(crate) owner: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) space: Option<String>,
    spec: fn() -> CommandSpec,
    write: fn(&Payload) -> serde_json::Result<String>,
}

impl SagaCommand {
    /// A command to the aggregate with this id.
    pub fn to<C: Command>(aggregate_id: impl Into<String>, command: C) -> Self {
        Self {
            aggregate_id: Some(aggregate_id.into()),
            ..Self::new(command)
        }
    }

    /// A command whose aggregate is named by its owner.
    pub fn to_owner<C: Command>(owner: impl Into<String>, command: C) -> Self {
        Self::new(command).owner(owner)
    }

    fn new<C: Command>(command: C) -> Self {
        Self {
            payload: Arc::new(command),
            payload_type: std::any::TypeId::of::<C>(),
            aggregate_id: None,
            owner: None,
            tenant: None,
            space: None,
            spec: C::spec,
            write: |payload| {
                serde_json::to_string(payload.downcast_ref::<C>().expect("made above"))
            },
        }
    }

    /// Sets the owner.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets another tenant than the event's.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets another space than the event's; an empty one is none.
    #[must_use]
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.space = Some(space.into());
        self
    }

    /// The command, if it is of this type; for tests of sagas.
    pub fn payload<C: Command>(&self) -> Option<&C> {
        self.payload.downcast_ref()
    }

    /// The name of its type.
    pub fn name(&self) -> &'static str {
        (self.spec)().name
    }

    /// Its body as JSON.
    ///
    /// # Errors
    /// What serde says of a value that JSON can't hold.
    pub fn body(&self) -> Result<String, serde_json::Error> {
        (self.write)(&self.payload)
    }

    /// The aggregate id it is sent to, if it names one.
    pub fn target(&self) -> Option<&str> {
        self.aggregate_id.as_deref()
    }
}

impl fmt::Debug for SagaCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaCommand")
            .field("name", &self.name())
            .field("aggregate_id", &self.aggregate_id)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}
