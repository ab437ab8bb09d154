//! A command type with its body and its function erased.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::{Schema, SchemaGenerator};
use serde::Deserializer as _;
use serde_json::value::RawValue;

use super::aggregate::{AggregateDefinition, ErasedState, typed};
use crate::admission::TransformContext;
use crate::command::Payload;
use crate::commit::RecordedEvent;
use crate::model::{
    Aggregate, BindingError, Command, CommandSpec, Decide, DecideContext, Event, Evolve, Rejection,
};
use crate::wait::{FunctionInfo, FunctionKind};

/// Why a body is no command of its type (R5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFault {
    /// The path of the bad field; `.` for the body as a whole.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What a command function, its hooks and the evolution made of a state.
#[derive(Debug)]
pub struct Decided {
    /// The events to commit; none commits nothing (R45).
    pub events: Arc<[RecordedEvent]>,
    /// The state after them.
    pub state: ErasedState,
    /// The result map, where it holds anything.
    pub result: Option<Arc<RawValue>>,
}

/// Why deciding gave nothing to commit.
#[derive(Debug)]
pub enum DecideFault {
    /// Domain code refuses.
    Rejected(Rejection),
    /// An event or the result can't be written as JSON: a fault of the domain's code.
    Unwritable(String),
    /// There is nowhere to decide any more: the node is going away.
    Ended,
}

/// What deciding came to.
pub type DecideOutcome = Result<Decided, DecideFault>;

/// A transformer with its command type erased (R6).
pub type TransformFn =
    Arc<dyn Fn(Payload, &TransformContext<'_>) -> Result<Payload, Rejection> + Send + Sync>;

type DecideFn = fn(ErasedState, Payload, DecideContext) -> BoxFuture<'static, DecideOutcome>;

/// A command type.
pub struct CommandDefinition {
    /// Its name, in routes and in the log.
    pub name: Arc<str>,
    /// Its declaration.
    pub spec: CommandSpec,
    /// Its Rust type.
    pub payload_type: TypeId,
    /// What signals say of it.
    pub function: Arc<FunctionInfo>,
    /// Its transformers, in order.
    pub(crate) transformers: Vec<TransformFn>,
    pub(super) decode: fn(&[u8], bool) -> Result<Payload, BodyFault>,
    pub(super) encode: fn(&Payload) -> serde_json::Result<String>,
    pub(super) validate: fn(&Payload) -> Vec<BindingError>,
    pub(super) aggregate_id: fn(&Payload) -> Option<String>,
    pub(super) decide: DecideFn,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
}

impl fmt::Debug for CommandDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandDefinition")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl CommandDefinition {
    pub(super) fn of<A: Aggregate + Decide<C>, C: Command>() -> Self {
        Self::with_decide::<C>(C::spec(), |state, payload, context| {
            decide::<A, C>(state, payload, context).boxed()
        })
    }

    pub(super) fn with_decide<C: Command>(spec: CommandSpec, decide: DecideFn) -> Self {
        Self {
            name: Arc::from(spec.name),
            payload_type: TypeId::of::<C>(),
            function: Arc::new(FunctionInfo {
                kind: FunctionKind::Command,
                context: Arc::from(""),
                processor: Arc::from(""),
                name: Arc::from(spec.name),
            }),
            transformers: Vec::new(),
            decode: decode::<C>,
            encode: |payload| serde_json::to_string(typed_payload::<C>(payload)),
            validate: |payload| typed_payload::<C>(payload).validate(),
            aggregate_id: |payload| typed_payload::<C>(payload).aggregate_id(),
            decide,
            schema: |generator| generator.subschema_for::<C>(),
            spec,
        }
    }

    /// Says which aggregate it belongs to.
    pub(super) fn belonging_to(mut self, context: &Arc<str>, aggregate: &Arc<str>) -> Self {
        self.function = Arc::new(FunctionInfo {
            context: Arc::clone(context),
            processor: Arc::clone(aggregate),
            ..(*self.function).clone()
        });
        self
    }

    /// Reads a JSON body (R5).
    ///
    /// # Errors
    /// [`BodyFault`] with the path of the bad field.
    pub fn decode(&self, body: &[u8]) -> Result<Payload, BodyFault> {
        (self.decode)(body, self.spec.strict)
    }

    /// Writes a body as JSON, for another node.
    ///
    /// # Errors
    /// What serde says of a value that JSON can't hold.
    pub fn encode(&self, payload: &Payload) -> serde_json::Result<String> {
        (self.encode)(payload)
    }

    /// Every fault of a decoded body (R5).
    pub fn validate(&self, payload: &Payload) -> Vec<BindingError> {
        (self.validate)(payload)
    }

    /// The aggregate id in the body, where the type marks a field (R3).
    pub fn aggregate_id(&self, payload: &Payload) -> Option<String> {
        (self.aggregate_id)(payload)
    }

    /// Decides, runs the hooks, and evolves.
    pub fn decide(
        &self,
        state: ErasedState,
        payload: Payload,
        context: DecideContext,
    ) -> BoxFuture<'static, DecideOutcome> {
        (self.decide)(state, payload, context)
    }

    /// The JSON schema of the body.
    pub fn body_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

pub(super) fn typed_payload<C: Command>(payload: &Payload) -> &C {
    payload
        .downcast_ref()
        .expect("a body is read by the definition that decoded it")
}

fn decode<C: Command>(body: &[u8], strict: bool) -> Result<Payload, BodyFault> {
    let whole = |error: serde_json::Error| BodyFault {
        path: ".".into(),
        reason: error.to_string(),
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let mut track = serde_path_to_error::Track::new();
    let mut unknown = None;
    let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let mut note = |path: serde_ignored::Path<'_>| {
        unknown.get_or_insert_with(|| written(&path));
    };
    let decoded = if tracked.is_human_readable() {
        serde_ignored::deserialize::<_, _, C>(tracked, &mut note)
    } else {
        C::deserialize(tracked)
    };
    let command = decoded.map_err(|error| BodyFault {
        path: track.path().to_string(),
        reason: error.to_string(),
    })?;
    json.end().map_err(whole)?;
    match unknown {
        Some(path) if strict => Err(BodyFault {
            path,
            reason: "unknown field".into(),
        }),
        _ => Ok(Arc::new(command)),
    }
}

/// The path of an unknown field, in the form that every other fault has: `items[2].price`.
fn written(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", written(parent)),
        Path::Map { parent, key } => match written(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => written(parent),
    }
}

async fn decide<A: Aggregate + Decide<C>, C: Command>(
    state: ErasedState,
    payload: Payload,
    context: DecideContext,
) -> DecideOutcome {
    let before = typed::<A>(&state);
    let mut decision = before
        .decide(typed_payload::<C>(&payload), &context)
        .await
        .map_err(DecideFault::Rejected)?;
    for hook in A::after_hooks() {
        let more = hook(before, &decision.events, &context).map_err(DecideFault::Rejected)?;
        decision.events.extend(more);
    }
    if let Some(reason) = decision.unwritable {
        return Err(DecideFault::Unwritable(reason));
    }
    let result = match decision.result.is_empty() {
        true => None,
        false => Some(write_result(&decision.result)?),
    };
    if decision.events.is_empty() {
        return Ok(Decided {
            events: Arc::default(),
            state,
            result,
        });
    }
    let mut after = before.clone();
    let mut recorded = |event| {
        let recorded = record::<A>(event, &context.command.aggregate)?;
        after.evolve(event);
        Ok(recorded)
    };
    let events: Arc<[RecordedEvent]> = match &decision.events[..] {
        // Most commands decide one event: no list is gathered for it first.
        [event] => Arc::new([recorded(event)?]),
        events => events.iter().map(recorded).collect::<Result<_, _>>()?,
    };
    Ok(Decided {
        events,
        state: Arc::new(after),
        result,
    })
}

fn record<A: Aggregate>(
    event: &<A as Evolve>::Event,
    definition: &AggregateDefinition,
) -> Result<RecordedEvent, DecideFault> {
    let index = event.index();
    let spec = &<A::Event as Event>::specs()[index];
    let body = event
        .encode()
        .map_err(|error| DecideFault::Unwritable(format!("event '{}': {error}", spec.name)))?;
    Ok(RecordedEvent {
        name: definition.event_name(index),
        revision: spec.revision,
        body,
    })
}

fn write_result(
    result: &serde_json::Map<String, serde_json::Value>,
) -> Result<Arc<RawValue>, DecideFault> {
    serde_json::value::to_raw_value(result)
        .map(Arc::from)
        .map_err(|error| DecideFault::Unwritable(format!("result: {error}")))
}

pub(super) fn erase_transformer<C: Command + Clone>(
    transform: impl Fn(C, &TransformContext<'_>) -> Result<C, Rejection> + Send + Sync + 'static,
) -> TransformFn {
    Arc::new(move |payload, context| {
        let command = typed_payload::<C>(&payload).clone();
        Ok(Arc::new(transform(command, context)?))
    })
}
