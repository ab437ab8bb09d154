//! An aggregate type with its state erased.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{Schema, SchemaGenerator};

use super::builtin::{self, BUILTIN_EVENTS};
use super::command::CommandDefinition;
use super::{RegistryError, TransformFn};
use crate::commit::RecordedEvent;
use crate::id::{AggregateId, AggregateType, TenantId};
use crate::model::{
    Aggregate, AggregateSpec, Command, Decide, Event, EventFault, EventSpec, Evolve, OwnerPolicy,
};
use crate::model::{decode_stored, finite};

/// A state of some aggregate type; shared, never changed in place.
pub type ErasedState = Arc<dyn Any + Send + Sync>;

/// The commands of an aggregate type, while they are collected.
pub struct CommandSet<A> {
    commands: Vec<CommandDefinition>,
    aggregate: PhantomData<fn() -> A>,
}

impl<A> fmt::Debug for CommandSet<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.commands.iter().map(|command| &command.name))
            .finish()
    }
}

impl<A: Aggregate> CommandSet<A> {
    /// Adds a command that the aggregate decides.
    pub fn add<C: Command>(&mut self)
    where
        A: Decide<C>,
    {
        self.commands.push(CommandDefinition::of::<A, C>());
    }
}

type Apply = fn(ErasedState, &[RecordedEvent]) -> Result<ErasedState, EventFault>;

/// An aggregate type.
pub struct AggregateDefinition {
    /// Its declaration.
    pub spec: AggregateSpec,
    /// Its name in the log: with the context before it where that is not the node's own.
    pub aggregate_type: AggregateType,
    /// The context it belongs to.
    pub context: Arc<str>,
    /// The one tenant of all its aggregates, if it has just one.
    pub static_tenant: Option<TenantId>,
    /// Whether that is another context than the node's own.
    pub is_foreign: bool,
    /// Its commands, the built-in ones last.
    pub commands: Vec<Arc<CommandDefinition>>,
    /// Its events, without the built-in ones.
    pub events: &'static [EventSpec],
    /// Their names as the log stores them, so that recording one copies nothing.
    event_names: Vec<Arc<str>>,
    state_type: TypeId,
    initial: fn(&AggregateId) -> ErasedState,
    decode_state: fn(&str) -> Result<ErasedState, serde_json::Error>,
    encode_state: fn(&ErasedState) -> Result<String, serde_json::Error>,
    apply: Apply,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl fmt::Debug for AggregateDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregateDefinition")
            .field("aggregate_type", &self.aggregate_type)
            .finish_non_exhaustive()
    }
}

impl AggregateDefinition {
    pub(super) fn of<A: Aggregate>(own_context: &str) -> Self {
        let spec = A::spec();
        let mut set = CommandSet::<A> {
            commands: Vec::new(),
            aggregate: PhantomData,
        };
        A::commands(&mut set);
        let mut commands = set.commands;
        for builtin in builtin::commands(spec.owner) {
            if !commands.iter().any(|own| own.name == builtin.name) {
                commands.push(builtin);
            }
        }
        let context = spec.context.unwrap_or(own_context);
        let is_foreign = context != own_context;
        let name = if is_foreign {
            format!("{context}.{}", spec.name)
        } else {
            spec.name.to_owned()
        };
        let (context, aggregate): (Arc<str>, Arc<str>) = (context.into(), spec.name.into());
        Self {
            aggregate_type: AggregateType::trusted(name),
            commands: commands
                .into_iter()
                .map(|command| Arc::new(command.belonging_to(&context, &aggregate)))
                .collect(),
            static_tenant: spec.static_tenant.map(TenantId::trusted),
            context,
            is_foreign,
            events: <A::Event as Event>::specs(),
            event_names: <A::Event as Event>::specs()
                .iter()
                .map(|spec| Arc::from(spec.name))
                .collect(),
            state_type: TypeId::of::<A>(),
            initial: |id| Arc::new(A::initial(id)),
            decode_state: |json| Ok(Arc::new(serde_json::from_str::<A>(json)?)),
            encode_state: |state| finite::write(typed::<A>(state)),
            apply: apply::<A>,
            schema: |generator| generator.subschema_for::<A>(),
            spec,
        }
    }

    /// A command by its name.
    pub fn command(&self, name: &str) -> Option<&Arc<CommandDefinition>> {
        self.commands.iter().find(|command| &*command.name == name)
    }

    /// The name of an event as the log stores it, by its place in [`Self::events`].
    pub(super) fn event_name(&self, index: usize) -> Arc<str> {
        Arc::clone(&self.event_names[index])
    }

    /// Whether its states are of this type.
    pub fn is<A: Aggregate>(&self) -> bool {
        self.state_type == TypeId::of::<A>()
    }

    /// Whether the owner's id is the aggregate's id.
    pub fn owner_is_id(&self) -> bool {
        self.spec.owner == OwnerPolicy::AggregateId
    }

    /// The state before the first event.
    pub fn initial(&self, id: &AggregateId) -> ErasedState {
        (self.initial)(id)
    }

    /// Reads a state that a snapshot stored.
    ///
    /// # Errors
    /// What serde says of it.
    pub fn decode_state(&self, json: &str) -> Result<ErasedState, serde_json::Error> {
        (self.decode_state)(json)
    }

    /// Writes a state as a snapshot stores it, and as readers get it.
    ///
    /// # Errors
    /// What serde says of a state that JSON can't hold.
    pub fn encode_state(&self, state: &ErasedState) -> Result<String, serde_json::Error> {
        (self.encode_state)(state)
    }

    /// The state after stored events; those of the system's own change no user state.
    /// A state that nobody else holds is changed in place: replay copies nothing.
    ///
    /// # Errors
    /// [`EventFault`], for the first event that can't be read (R50).
    pub fn apply(
        &self,
        state: ErasedState,
        events: &[RecordedEvent],
    ) -> Result<ErasedState, EventFault> {
        (self.apply)(state, events)
    }

    /// The JSON schema of the state.
    pub fn state_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }

    pub(super) fn state_type(&self) -> TypeId {
        self.state_type
    }

    pub(super) fn check(&self, errors: &mut Vec<RegistryError>) {
        let aggregate = self.spec.name.to_owned();
        for (index, command) in self.commands.iter().enumerate() {
            if self.commands[..index]
                .iter()
                .any(|earlier| earlier.name == command.name)
            {
                errors.push(RegistryError::CommandTwice {
                    aggregate: aggregate.clone(),
                    command: command.name.to_string(),
                });
            }
        }
        let mut names: Vec<&str> = BUILTIN_EVENTS.to_vec();
        for event in self.events {
            for name in std::iter::once(&event.name).chain(event.aliases) {
                if names.contains(name) {
                    errors.push(RegistryError::EventName {
                        aggregate: aggregate.clone(),
                        event: (*name).to_owned(),
                    });
                }
                names.push(name);
            }
        }
    }

    pub(super) fn take_transformers(
        &mut self,
        transformers: &mut Vec<(TypeId, &'static str, TransformFn)>,
    ) {
        for command in &mut self.commands {
            let mine = transformers.extract_if(.., |(of, _, _)| *of == command.payload_type);
            let mine: Vec<_> = mine.map(|(_, _, transform)| transform).collect();
            if let Some(command) = Arc::get_mut(command) {
                command.transformers.extend(mine);
            }
        }
    }
}

/// The typed state behind an erased one.
///
/// Erased states are made only by their own type's definition, and the kernel never mixes
/// definitions, so the types agree.
pub(super) fn typed<A: Aggregate>(state: &ErasedState) -> &A {
    state
        .downcast_ref()
        .expect("a state is read by the definition that made it")
}

fn apply<A: Aggregate>(
    state: ErasedState,
    events: &[RecordedEvent],
) -> Result<ErasedState, EventFault> {
    let mut next: Arc<A> = state
        .downcast()
        .expect("a state is changed by the definition that made it");
    for event in events
        .iter()
        .filter(|event| !BUILTIN_EVENTS.contains(&&*event.name))
    {
        let event: <A as Evolve>::Event = decode_stored(&event.name, event.revision, &event.body)?;
        Arc::make_mut(&mut next).evolve(&event);
    }
    Ok(next)
}
