//! Given what has happened, when an event is committed, then the saga sends these commands.

use std::fmt;
use std::sync::Arc;

use super::given::{Given, given};
use super::story::recorded;
use crate::commit::{RecordedEvent, StateView};
use crate::error::CommandError;
use crate::model::{Evolve, RejectedCommand, Saga, SagaCommand};
use crate::registry::SagaDefinition;

/// Begins a test of a saga, on an aggregate with the id `1` unless it is told another.
///
/// ```ignore
/// given_saga(TransferSaga)
///     .id("source")
///     .when(AccountEvent::Prepared { to: "target".into(), amount: 10 })
///     .sends([SagaCommand::to("target", Entry { source_id: "source".into(), amount: 10 })])
///     .rejected(0, CommandError::NotFound)
///     .sends([SagaCommand::to("source", UnlockAmount { amount: 10 })]);
/// ```
pub fn given_saga<S: Saga>(saga: S) -> GivenSaga<S> {
    GivenSaga {
        saga,
        given: given("1"),
    }
}

/// What has happened to the aggregate that a saga follows.
#[must_use = "nothing is tested before `when`"]
pub struct GivenSaga<S: Saga> {
    saga: S,
    given: Given<S::Aggregate>,
}

impl<S: Saga> fmt::Debug for GivenSaga<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenSaga")
            .field("saga", &S::NAME)
            .field("given", &self.given)
            .finish()
    }
}

impl<S: Saga> GivenSaga<S> {
    /// The aggregate has this id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.given.place.id = id.into();
        self
    }

    /// It belongs to this tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.given = self.given.tenant(tenant);
        self
    }

    /// It has this owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.given = self.given.owner(owner);
        self
    }

    /// It lies in this space.
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.given = self.given.space(space);
        self
    }

    /// These events have happened before, in one commit.
    #[track_caller]
    pub fn events(
        mut self,
        events: impl IntoIterator<Item = <S::Aggregate as Evolve>::Event>,
    ) -> Self {
        self.given = self.given.events(events);
        self
    }

    /// An event is committed, and the saga handles it. Twice: after a crash it would, and has to
    /// send the same (R83).
    #[track_caller]
    pub fn when(self, event: <S::Aggregate as Evolve>::Event) -> SagaThen {
        let saga = self.saga;
        let mut story = self.given.tell(|registry| registry.saga(saga));
        let event = recorded(&event);
        story.commit(vec![event.clone()]);
        let definition = story
            .registry
            .sagas()
            .iter()
            .find(|known| known.name == S::NAME)
            .expect("the saga under test is registered");
        SagaThen::new(definition.clone(), event, story.view())
    }
}

/// What a saga sends.
pub struct SagaThen {
    definition: Arc<SagaDefinition>,
    event: RecordedEvent,
    view: StateView,
    happened: String,
    /// None where the saga has no answer to a refusal.
    sent: Option<Vec<SagaCommand>>,
}

impl fmt::Debug for SagaThen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaThen")
            .field("saga", &self.definition.name)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl SagaThen {
    #[track_caller]
    fn new(definition: Arc<SagaDefinition>, event: RecordedEvent, view: StateView) -> Self {
        let handle = || {
            definition
                .handle(&event, &view)
                .unwrap_or_else(|fault| panic!("the event can't be read back: {fault}"))
        };
        let (sent, again) = (handle(), handle());
        let happened = format!("'{}' was committed", event.name);
        let then = Self {
            definition,
            event,
            view,
            happened,
            sent: Some(sent),
        };
        then.check_same(Some(&again));
        then
    }

    /// It sends these commands, in this order, and no others.
    #[track_caller]
    pub fn sends(self, expected: impl IntoIterator<Item = SagaCommand>) -> Self {
        let expected: Vec<_> = expected.into_iter().collect();
        let is_same = self
            .sent
            .as_deref()
            .is_some_and(|sent| same(sent, &expected));
        if !is_same {
            self.fail(&format!(
                "these commands were expected:\n{}",
                lines(&expected)
            ));
        }
        self
    }

    /// It has nothing to send.
    #[track_caller]
    pub fn sends_nothing(self) -> Self {
        self.sends([])
    }

    /// One of the commands was refused for good; what the saga answers is checked next.
    #[track_caller]
    pub fn rejected(mut self, index: usize, error: impl Into<CommandError>) -> Self {
        let error = error.into();
        let sent = self.commands().map_or(0, <[_]>::len);
        assert!(
            index < sent,
            "the saga sends {sent} commands, so none has the index {index}"
        );
        self.happened = format!("command {index} was refused ({})", error.code());
        let rejected = RejectedCommand {
            index,
            error: &error,
        };
        let answer = || {
            self.definition
                .on_rejected(&self.event, &self.view, &rejected)
                .unwrap_or_else(|fault| panic!("the event can't be read back: {fault}"))
        };
        let (first, again) = (answer(), answer());
        self.sent = first;
        self.check_same(again.as_deref());
        self
    }

    /// It has no answer to the refusal: the entry waits for an operator.
    #[track_caller]
    pub fn unanswered(self) -> Self {
        if self.sent.is_some() {
            self.fail("no answer was expected");
        }
        self
    }

    /// The commands; none where the saga has no answer.
    pub fn commands(&self) -> Option<&[SagaCommand]> {
        self.sent.as_deref()
    }

    #[track_caller]
    fn check_same(&self, again: Option<&[SagaCommand]>) {
        let (first, again) = (
            self.commands().unwrap_or_default(),
            again.unwrap_or_default(),
        );
        assert!(
            same(first, again),
            "{} is no pure function of the entry: handled once more it sends\n{}\nafter\n{}",
            self.definition.name,
            lines(again),
            lines(first)
        );
    }

    #[track_caller]
    fn fail(&self, expected: &str) -> ! {
        let sent = match &self.sent {
            Some(sent) => format!("sends:\n{}", lines(sent)),
            None => "has no answer".to_owned(),
        };
        let (happened, saga) = (&self.happened, self.definition.name);
        panic!("when {happened}, {expected}\nbut {saga} {sent}")
    }
}

fn same(one: &[SagaCommand], other: &[SagaCommand]) -> bool {
    let same = |(one, other): (&SagaCommand, &SagaCommand)| {
        one.payload_type == other.payload_type && line(one) == line(other)
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

fn lines(commands: &[SagaCommand]) -> String {
    match commands {
        [] => "  (none)".to_owned(),
        commands => commands.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

/// All that is to be known of a command, in one line.
fn line(command: &SagaCommand) -> String {
    let body = command
        .body()
        .unwrap_or_else(|error| panic!("a command can't be written as JSON: {error}"));
    let mut line = format!("  {} {body}", command.name());
    for (what, value) in [
        ("id", &command.aggregate_id),
        ("owner", &command.owner),
        ("tenant", &command.tenant),
        ("space", &command.space),
    ] {
        if let Some(value) = value {
            line.push_str(&format!(", {what} {value:?}"));
        }
    }
    line
}
