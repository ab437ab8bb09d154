//! The aggregate: a state, how events change it, and which commands it decides.

use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{AccessRule, Command, DecideContext, Decision, Event, Rejection};
use crate::id::AggregateId;

/// How an event changes a state. Pure: no clock, no I/O, no failure.
///
/// Deciding has checked that the event may happen, so evolving only records that it did.
/// The same events must give the same state for ever: they are replayed from the log.
pub trait Evolve {
    /// The events of this aggregate.
    type Event: Event;

    /// Applies one event.
    fn evolve(&mut self, event: &Self::Event);
}

/// An aggregate type; derive it with `#[derive(Aggregate)]`.
///
/// ```ignore
/// #[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
/// #[aggregate(commands(Open, Deposit))]
/// struct Account { balance: i64 }
/// ```
pub trait Aggregate:
    Evolve + Default + Clone + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Name, identity rules and access of the type.
    fn spec() -> AggregateSpec;

    /// The state before the first event.
    fn initial(_id: &AggregateId) -> Self {
        Self::default()
    }

    /// Adds every command of the type to the set.
    fn commands(set: &mut CommandSet<Self>);

    /// Functions that run after each command function, in order (R51).
    fn after_hooks() -> Vec<AfterHook<Self>> {
        Vec::new()
    }
}

/// Decides one command type against the latest state.
///
/// Deciding changes nothing: it answers with events to commit, or rejects.
/// It may do I/O through services in its context. A request that has committed is not
/// decided again (R40), but a conflict with another node decides anew (R52).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decide `{C}`",
    label = "this command has no function",
    note = "write `impl Decide<{C}> for {Self} {{ async fn decide(…) … }}`"
)]
pub trait Decide<C: Command>: Aggregate {
    /// Decides.
    ///
    /// # Errors
    /// A [`Rejection`] carries the domain's own code and message (R56); nothing is committed.
    fn decide(
        &self,
        command: &C,
        context: &DecideContext,
    ) -> impl Future<Output = Result<Decision<Self::Event>, Rejection>> + Send;
}

/// A function that runs after the command function: it sees the state before and the events so
/// far, and may add events or reject (R51).
pub type AfterHook<A> = fn(
    state: &A,
    events: &[<A as Evolve>::Event],
    context: &DecideContext,
) -> Result<Vec<<A as Evolve>::Event>, Rejection>;

/// Where an aggregate's owner comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerPolicy {
    /// The type has no owners.
    Never,
    /// Each aggregate has an owner, named by the request.
    Always,
    /// The owner's id is the aggregate's id.
    AggregateId,
}

/// The declaration of an aggregate type.
#[derive(Debug, Clone)]
pub struct AggregateSpec {
    /// The name in the log, unique in its context.
    pub name: &'static str,
    /// The path segment of its resources; the name unless declared.
    pub resource: &'static str,
    /// The context it belongs to, where that is not the node's own.
    pub context: Option<&'static str>,
    /// The one tenant of all its aggregates, if it has just one.
    pub static_tenant: Option<&'static str>,
    /// Where the owner comes from.
    pub owner: OwnerPolicy,
    /// Raised when `evolve` or the state's shape changes, so that older snapshots are ignored.
    pub state_revision: u32,
    /// Who may read states and commits.
    pub read_access: AccessRule,
}

impl AggregateSpec {
    /// A type with no owners, tenants from the request, and the default access.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            resource: name,
            context: None,
            static_tenant: None,
            owner: OwnerPolicy::Never,
            state_revision: 1,
            read_access: AccessRule::Default,
        }
    }
}

pub use crate::registry::CommandSet;
