//! The test kit fails where a node would refuse, and says what happened instead.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{given, given_saga};
use crate::access::Principal;
use crate::admission::TransformContext;
use crate::error::CommandError;
use crate::model::{
    Decide, DecideContext, Decision, Evolve, RejectedCommand, Rejection, Saga, SagaCommand,
    SagaEntry,
};
use crate::registry::RegistryBuilder;
use crate::{Aggregate, Command, Event};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum DoorEvent {
    Opened { by: String },
    Locked,
    Lost { secret: u64 },
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates, pure)]
struct Open {
    by: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, garde::Validate, Command)]
#[command(validate, roles("porter"))]
struct Lock {
    #[garde(range(max = 9))]
    turns: u64,
}

/// Waits for the clock of a runtime.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
struct Knock {}

/// Writes an event that is read back as another.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
struct Lose {}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(owner = "always", commands(Open, Lock, Knock, Lose))]
struct Door {
    #[aggregate(id)]
    id: String,
    by: String,
    seen: u64,
}

/// What `evolve` must not depend on.
static SEEN: AtomicU64 = AtomicU64::new(1);

impl Evolve for Door {
    type Event = DoorEvent;

    fn evolve(&mut self, event: &DoorEvent) {
        match event {
            DoorEvent::Opened { by } => self.by.clone_from(by),
            DoorEvent::Locked => self.by.clear(),
            DoorEvent::Lost { .. } => self.seen = SEEN.fetch_add(1, Ordering::Relaxed),
        }
    }
}

type Decided = Result<Decision<DoorEvent>, Rejection>;

impl Decide<Open> for Door {
    async fn decide(&self, command: &Open, context: &DecideContext) -> Decided {
        let by = command.by.clone();
        Ok(Decision::event(DoorEvent::Opened { by }).with_result("at", context.now()))
    }
}

impl Decide<Lock> for Door {
    async fn decide(&self, command: &Lock, context: &DecideContext) -> Decided {
        if context.service::<u64>()? < &command.turns {
            return Err(Rejection::new("door.stuck", "the key doesn't turn"));
        }
        Ok(Decision::event(DoorEvent::Locked))
    }
}

impl Decide<Knock> for Door {
    async fn decide(&self, _command: &Knock, _context: &DecideContext) -> Decided {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Ok(Decision::none())
    }
}

impl Decide<Lose> for Door {
    async fn decide(&self, _command: &Lose, _context: &DecideContext) -> Decided {
        Ok(Decision::event(DoorEvent::Lost { secret: 1 }))
    }
}

fn opened() -> DoorEvent {
    DoorEvent::Opened { by: "ann".into() }
}

fn open() -> Open {
    Open { by: "ann".into() }
}

fn porter() -> Principal {
    Principal {
        subject: Some(Arc::from("ann")),
        roles: vec![Arc::from("porter")],
        ..Principal::default()
    }
}

/// What a failing check says.
fn complaint<T>(check: impl FnOnce() -> T) -> String {
    let failed = catch_unwind(AssertUnwindSafe(check)).err().unwrap();
    *failed.downcast::<String>().unwrap()
}

#[test]
fn a_command_is_decided_on_what_has_happened() {
    given::<Door>("front")
        .owner("ann")
        .at(7)
        .when(open())
        .then()
        .events([opened()])
        .result("at", 7)
        .state(|door| assert_eq!((&*door.id, &*door.by), ("front", "ann")))
        .facts(|facts| assert_eq!((facts.owner.as_str(), facts.event_time), ("ann", 7)));
}

#[test]
fn a_test_goes_on_with_the_next_command() {
    given::<Door>("front")
        .owner("ann")
        .provide(5_u64)
        .when(open())
        .then()
        .when(Lock { turns: 6 })
        .principal(porter())
        .then()
        .rejects("door.stuck")
        .state(|door| assert_eq!(door.by, "ann"))
        .when(Lock { turns: 5 })
        .principal(porter())
        .expected_version(1)
        .then()
        .events([DoorEvent::Locked])
        .state(|door| assert_eq!(door.by, ""));
}

#[test]
fn r10_r11_r57_the_guards_are_those_of_a_node() {
    let front = || given::<Door>("front").owner("ann");
    front()
        .events([opened()])
        .when(open())
        .then()
        .rejects("wow.aggregate.exists");
    let lock = Lock { turns: 1 };
    front()
        .when(lock.clone())
        .principal(porter())
        .then()
        .rejects("wow.aggregate.not-found");
    let gone = front().events([opened()]).deleted();
    gone.when(lock.clone())
        .principal(porter())
        .then()
        .rejects("wow.aggregate.deleted");
    let opened = || front().space("home").events([opened()]);
    opened()
        .when(Lose {})
        .owner("bob")
        .then()
        .rejects("wow.access.owner");
    opened()
        .when(Lose {})
        .space("work")
        .then()
        .rejects("wow.access.space");
    opened()
        .when(Knock {})
        .expected_version(3)
        .then()
        .rejects("wow.command.version-mismatch");
}

#[test]
fn r4_access_is_judged() {
    let front = || given::<Door>("front").owner("ann").events([opened()]);
    let lock = Lock { turns: 1 };
    front()
        .when(lock.clone())
        .then()
        .rejects("wow.access.unauthenticated");
    let nobody = Principal {
        roles: Vec::new(),
        ..porter()
    };
    front()
        .when(lock)
        .principal(nobody)
        .then()
        .rejects("wow.access.denied");
}

#[test]
fn r5_the_body_is_decoded_and_validated() {
    let front = || given::<Door>("front").owner("ann").events([opened()]);
    front()
        .when(Lock { turns: 10 })
        .principal(porter())
        .then()
        .rejects("wow.command.invalid")
        .faults(["turns"]);
    front()
        .when_json("lock", r#"{"turns": 1, "hard": true}"#)
        .principal(porter())
        .then()
        .rejects("wow.command.body-invalid")
        .faults(["hard"]);
}

#[test]
fn r6_transformers_run_where_the_types_are_registered_with_them() {
    let by_bob = |mut command: Open, _: &TransformContext<'_>| {
        command.by = "bob".into();
        Ok(command)
    };
    given::<Door>("front")
        .owner("ann")
        .registered_by(|registry: RegistryBuilder| registry.register::<Door>().transform(by_bob))
        .when(open())
        .then()
        .events([DoorEvent::Opened { by: "bob".into() }]);
}

#[test]
fn the_systems_own_commands_can_be_sent() {
    given::<Door>("front")
        .owner("ann")
        .events([opened()])
        .when_json("delete_aggregate", "{}")
        .then()
        .event_names(["aggregate_deleted"])
        .facts(|facts| assert!(facts.deleted));
}

#[tokio::test(start_paused = true)]
async fn a_test_with_a_runtime_awaits() {
    let then = given::<Door>("front").owner("ann").when(Knock {}).await;
    then.nothing();
}

#[test]
fn a_failure_says_what_happened_instead() {
    let then = || given::<Door>("front").owner("ann").when(open()).then();
    let said = complaint(|| then().events([DoorEvent::Locked]));
    assert_eq!(
        said,
        "when 'open' came, these events were expected:\n  locked {}\n\
         but it committed:\n  opened {\"by\":\"ann\"}"
    );
    let said = complaint(|| then().rejects("door.stuck"));
    assert!(
        said.ends_with("but it committed:\n  opened {\"by\":\"ann\"}"),
        "{said}"
    );
    let said = complaint(|| then().when(open()).then().nothing());
    assert!(
        said.ends_with("wow.aggregate.exists: the aggregate exists already"),
        "{said}"
    );
    let said = complaint(|| then().result("at", 0));
    assert!(
        said.contains("the result 'at' should be 0, and is 17"),
        "{said}"
    );
}

#[test]
fn a_missing_owner_is_told_to_the_author_of_the_test() {
    let said = complaint(|| given::<Door>("front").when(open()));
    assert_eq!(
        said,
        "each 'door' has an owner: write `given(…).owner(\"…\")`"
    );
}

#[test]
fn an_evolve_that_depends_on_more_than_the_event_is_found() {
    let said = complaint(|| given::<Door>("front").owner("ann").when(Lose {}).then());
    assert!(
        said.starts_with("the log gives another state than deciding did"),
        "{said}"
    );
}

/// Sends what it is told, and counts, which it must not.
struct Bell {
    rung: AtomicU64,
    step: u64,
}

impl Saga for Bell {
    type Aggregate = Door;
    const NAME: &'static str = "Bell";

    fn handle(&self, event: &DoorEvent, entry: &SagaEntry<'_, Door>) -> Vec<SagaCommand> {
        let DoorEvent::Opened { by } = event else {
            return Vec::new();
        };
        let turns = self.rung.fetch_add(self.step, Ordering::Relaxed);
        let next = format!("{}-{}", entry.state.id, entry.version);
        vec![SagaCommand::to(next, Lock { turns }).owner(by)]
    }

    fn on_rejected(
        &self,
        _event: &DoorEvent,
        entry: &SagaEntry<'_, Door>,
        rejected: &RejectedCommand<'_>,
    ) -> Option<Vec<SagaCommand>> {
        let is_missing = *rejected.error == CommandError::NotFound;
        is_missing.then(|| vec![SagaCommand::to_owner(entry.identity.owner.as_str(), open())])
    }
}

fn bell(step: u64) -> Bell {
    Bell {
        rung: AtomicU64::new(3),
        step,
    }
}

#[test]
fn r83_a_saga_answers_an_entry_with_commands_and_a_refusal_with_others() {
    let when = || {
        given_saga(bell(0))
            .id("front")
            .owner("eve")
            .events([DoorEvent::Locked])
    };
    when().when(DoorEvent::Locked).sends_nothing();
    let sent = || SagaCommand::to("front-2", Lock { turns: 3 }).owner("ann");
    when()
        .when(opened())
        .sends([sent()])
        .rejected(0, CommandError::NotFound)
        .sends([SagaCommand::to_owner("eve", open())]);
    when()
        .when(opened())
        .rejected(0, CommandError::Deleted)
        .unanswered();
}

#[test]
fn r83_a_saga_that_sends_another_command_the_second_time_is_found() {
    let said = complaint(|| given_saga(bell(1)).owner("eve").when(opened()));
    assert!(
        said.starts_with("Bell is no pure function of the entry"),
        "{said}"
    );
}

#[test]
fn a_saga_that_sends_otherwise_is_shown() {
    let then = || given_saga(bell(0)).id("front").owner("eve").when(opened());
    let said = complaint(|| then().sends_nothing());
    assert_eq!(
        said,
        "when 'opened' was committed, these commands were expected:\n  (none)\n\
         but Bell sends:\n  lock {\"turns\":3}, id \"front-1\", owner \"ann\""
    );
    let said = complaint(|| then().sends([SagaCommand::to("front-1", Lock { turns: 3 })]));
    assert!(said.contains("owner \"ann\""), "{said}");
}
