//! Then this has to have come of it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::given::{When, written};
use super::story::{Story, lines, recorded, typed};
use crate::commit::{AggregateFacts, RecordedEvent};
use crate::error::CommandError;
use crate::execute::Executed;
use crate::model::{Aggregate, Command, Decide, Evolve};
use crate::registry::BUILTIN_EVENTS;

/// What came of a command. Each method checks one thing and fails the test with what happened
/// instead; `when` goes on with the next command.
pub struct Then<A> {
    story: Story<A>,
    command: String,
    outcome: Outcome,
}

enum Outcome {
    Done {
        events: Arc<[RecordedEvent]>,
        result: Option<Arc<RawValue>>,
    },
    Refused(CommandError),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { events, .. } => write!(f, "it committed:\n{}", lines(events)),
            Self::Refused(error) => write!(f, "it was refused:\n  {}: {error}", error.code()),
        }
    }
}

impl<A> fmt::Debug for Then<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Then")
            .field("command", &self.command)
            .field("outcome", &self.outcome.to_string())
            .finish_non_exhaustive()
    }
}

impl<A: Aggregate> Then<A> {
    pub(super) fn new(story: Story<A>, command: String, executed: Executed) -> Self {
        let outcome = match executed {
            Executed::Committed(view) => Outcome::Done {
                events: Arc::clone(&view.commit.events),
                result: view.commit.result.clone(),
            },
            Executed::Unchanged { result, .. } => Outcome::Done {
                events: Arc::from([]),
                result,
            },
            Executed::Known { .. } => unreachable!("each command has a request id of its own"),
            Executed::Failed(error) => Outcome::Refused(error),
        };
        Self {
            story,
            command,
            outcome,
        }
    }

    /// It committed these events, in this order, and no others.
    #[track_caller]
    pub fn events(self, expected: impl IntoIterator<Item = <A as Evolve>::Event>) -> Self {
        let expected: Vec<_> = expected.into_iter().map(|event| recorded(&event)).collect();
        let committed = match &self.outcome {
            Outcome::Done { events, .. } => &**events,
            Outcome::Refused(_) => &[],
        };
        let same = expected.len() == committed.len()
            && expected
                .iter()
                .zip(committed)
                .all(|(one, other)| same_event(one, other));
        let refused = matches!(self.outcome, Outcome::Refused(_));
        if refused || !same {
            self.fail(&format!(
                "these events were expected:\n{}",
                lines(&expected)
            ));
        }
        self
    }

    /// It committed events with these names; for the system's own, like `aggregate_deleted`.
    #[track_caller]
    pub fn event_names<'a>(self, expected: impl IntoIterator<Item = &'a str>) -> Self {
        let expected: Vec<_> = expected.into_iter().collect();
        let committed: Vec<_> = match &self.outcome {
            Outcome::Done { events, .. } => events.iter().map(|event| &*event.name).collect(),
            Outcome::Refused(_) => vec!["(refused)"],
        };
        if expected != committed {
            self.fail(&format!(
                "these events were expected:\n  {}",
                expected.join("\n  ")
            ));
        }
        self
    }

    /// It went well and committed nothing.
    #[track_caller]
    pub fn nothing(self) -> Self {
        self.events([])
    }

    /// It was refused with this code, the domain's or the system's.
    #[track_caller]
    pub fn rejects(self, code: &str) -> Self {
        match &self.outcome {
            Outcome::Refused(error) if error.code() == code => {}
            _ => self.fail(&format!("it should have been refused:\n  {code}")),
        }
        self
    }

    /// It was refused because of these fields of its body, in any order.
    #[track_caller]
    pub fn faults<'a>(self, fields: impl IntoIterator<Item = &'a str>) -> Self {
        let mut expected: Vec<_> = fields.into_iter().collect();
        let errors = match &self.outcome {
            Outcome::Refused(error) => error.binding_errors(),
            Outcome::Done { .. } => Vec::new(),
        };
        let mut found: Vec<_> = errors.iter().map(|error| &*error.name).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            self.fail(&format!(
                "these fields should be at fault:\n  {}",
                expected.join("\n  ")
            ));
        }
        self
    }

    /// The state is as the function asserts: after the command, and unchanged where that was
    /// refused.
    #[track_caller]
    pub fn state(self, check: impl FnOnce(&A)) -> Self {
        let (state, _) = self.story.state();
        check(state.downcast_ref().expect("the story is this aggregate's"));
        self
    }

    /// The system's facts are as the function asserts: owner, space, tags, deleted.
    #[track_caller]
    pub fn facts(self, check: impl FnOnce(&AggregateFacts)) -> Self {
        let (_, facts) = self.story.state();
        check(&facts);
        self
    }

    /// The result map has this value.
    #[track_caller]
    pub fn result(self, name: &str, expected: impl Serialize) -> Self {
        let expected = serde_json::to_value(expected).expect("an expectation is JSON");
        let results = match &self.outcome {
            Outcome::Done { result, .. } => result.as_deref().map(parsed).unwrap_or_default(),
            Outcome::Refused(_) => Value::Null,
        };
        let found = results.get(name);
        if found != Some(&expected) {
            let found = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
            self.fail(&format!(
                "the result '{name}' should be {expected}, and is {found}"
            ));
        }
        self
    }

    /// What refused it, where the test wants to know more than the code.
    pub fn refusal(&self) -> Option<&CommandError> {
        match &self.outcome {
            Outcome::Refused(error) => Some(error),
            Outcome::Done { .. } => None,
        }
    }

    /// The domain's events that it committed; none where it was refused.
    #[track_caller]
    pub fn committed(&self) -> Vec<<A as Evolve>::Event> {
        match &self.outcome {
            Outcome::Done { events, .. } => domain(events).map(typed::<A>).collect(),
            Outcome::Refused(_) => Vec::new(),
        }
    }

    /// The next command comes.
    #[track_caller]
    pub fn when<C: Command>(self, command: C) -> When<A>
    where
        A: Decide<C>,
    {
        When::new(self.story, C::spec().name, &written(&command))
    }

    /// The next command comes as JSON.
    pub fn when_json(self, command: &str, body: &str) -> When<A> {
        When::new(self.story, command, body)
    }

    #[track_caller]
    fn fail(&self, expected: &str) -> ! {
        panic!(
            "when '{}' came, {expected}\nbut {}",
            self.command, self.outcome
        )
    }
}

/// Events without the system's own.
fn domain(events: &[RecordedEvent]) -> impl Iterator<Item = &RecordedEvent> {
    let is_own = |event: &&RecordedEvent| !BUILTIN_EVENTS.contains(&&*event.name);
    events.iter().filter(is_own)
}

/// Bodies are compared as JSON where their texts differ: a map has no order.
fn same_event(one: &RecordedEvent, other: &RecordedEvent) -> bool {
    one.name == other.name
        && one.revision == other.revision
        && (one.body.get() == other.body.get() || parsed(&one.body) == parsed(&other.body))
}

fn parsed(json: &RawValue) -> Value {
    serde_json::from_str(json.get()).unwrap_or_default()
}
