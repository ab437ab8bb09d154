//! What an aggregate is written with: `use wow::prelude::*;`.

pub use wow_actors::{Handle, Submit};
pub use wow_kernel::access::Principal;
pub use wow_kernel::admission::TransformContext;
pub use wow_kernel::error::CommandError;
pub use wow_kernel::model::{
    Aggregate, Command, Decide, DecideContext, Decision, Event, Evolve, RejectedCommand, Rejection,
    RejectionKind, Saga, SagaCommand, SagaEntry, Services,
};
pub use wow_kernel::registry::RegistryBuilder;
pub use wow_kernel::result::CommandResult;
pub use wow_kernel::submission::Submission;
pub use wow_kernel::wait::Stage;
pub use wow_kernel::{Aggregate, Command, Event};

pub use crate::config::Config;
pub use crate::node::{Node, NodeBuilder, NodeError};
