//! What users write: aggregates, commands, events, sagas, and what their functions get and give.
//!
//! The traits here are typed. [`crate::registry`] erases them, so that one kernel runs every type.

mod aggregate;
mod command;
mod context;
mod decision;
mod event;
pub(crate) mod finite;
mod saga;
mod tagged;

pub use aggregate::{AfterHook, Aggregate, AggregateSpec, CommandSet, Decide, Evolve, OwnerPolicy};
pub use command::{
    AccessRule, BindingError, Command, CommandSpec, CreationRule, Method, PolicyFn, Purity, Route,
    Variable, VariableSource, validate_with_garde,
};
pub use context::{DecideContext, Services};
pub use decision::{Decision, Rejection, RejectionKind};
pub(crate) use event::decode_stored;
pub use event::{Event, EventFault, EventSpec, UpcastFn};
pub use saga::{RejectedCommand, Saga, SagaCommand, SagaEntry};
pub use tagged::{decode_variant, encode_variant};
