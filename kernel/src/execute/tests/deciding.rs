//! Running the command function: R30, R32, R35, R45, R51, R56, and what is too large.

use super::*;
use crate::ports::Isolation;
use crate::registry::DecideOutcome;
use futures_util::future::BoxFuture;

/// Runs one command that fails, and then one that goes well.
#[track_caller]
fn fails_alone(how: How, expected: &str, keeps_state: bool) {
    let mut node = Node::with_jar();
    assert_eq!(code(node.run(act(how))), expected);
    let kept = keeps_state.then_some(2);
    assert_eq!(node.cached_version(), kept);
    assert_eq!(version(node.run(act(How::Add(1)))), 3, "the lane goes on");
    assert_eq!(node.replayed().total, 11);
}

#[test]
fn r32_a_panic_fails_its_command_and_drops_the_state() {
    fails_alone(How::Panic, "wow.command.panicked", false);
}

#[test]
fn r32_an_evolve_that_panics_fails_the_command_that_decided_its_event() {
    fails_alone(How::Poison, "wow.command.panicked", false);
}

#[test]
fn r32_a_function_that_panics_when_it_is_given_up_fails_alone() {
    fails_alone(How::Clutch, "wow.command.panicked", false);
}

#[test]
fn r32_an_initial_state_that_panics_fails_its_command() {
    let mut node = Node::new(AccessMode::Open);
    for _ in 0..2 {
        let chant = Submission::typed(Chant {});
        // With an id made by admission, and with one that has to be loaded.
        assert_eq!(code(node.run(chant.clone())), "wow.command.panicked");
        assert_eq!(
            code(node.run(chant.aggregate_id("c"))),
            "wow.command.panicked"
        );
        assert_eq!(node.cached_version(), None);
    }
}

#[test]
fn r35_a_function_that_never_ends_is_given_up_after_its_time() {
    let mut node = Node::with_jar();
    let before = node.clock.monotonic();
    let answer = node.run(act(How::Never));
    assert_eq!(code(answer), "wow.command.decide-timeout");
    assert_eq!(node.clock.monotonic() - before, Duration::from_secs(30));
    assert_eq!(node.log().len(), 2, "nothing was committed");
    assert_eq!(version(node.run(act(How::Add(1)))), 3, "the lane goes on");
}

#[test]
fn r35_a_function_may_take_its_time() {
    let mut node = Node::with_jar();
    assert_eq!(version(node.run(act(How::Wait(29_999)))), 3);
    let late = node.run(act(How::Wait(30_001)));
    assert_eq!(code(late), "wow.command.decide-timeout");
}

#[test]
fn r35_the_deadline_never_cuts_an_append() {
    let mut node = Node::with_jar();
    let slow = [Fault::DelayAnswer(Duration::from_secs(45))];
    node.faults.script(Call::Append, slow);
    assert_eq!(version(node.run(act(How::Add(1)))), 3);
}

/// Counts what it runs.
#[derive(Default)]
struct Apart(AtomicUsize);

impl Isolation for Apart {
    fn run(&self, decide: BoxFuture<'static, DecideOutcome>) -> BoxFuture<'static, DecideOutcome> {
        super::count(&self.0);
        decide
    }
}

#[test]
fn r30_what_blocks_runs_apart_and_fails_alone_there_too() {
    let mut node = Node::with_jar();
    let apart = Arc::new(Apart::default());
    node.kernel.isolation = apart.clone();
    let act_apart = |how| to_jar(ActApart { how });
    assert_eq!(version(node.run(act_apart(How::Add(1)))), 3);
    assert_eq!(
        code(node.run(act_apart(How::Panic))),
        "wow.command.panicked"
    );
    assert_eq!(
        code(node.run(act_apart(How::Never))),
        "wow.command.decide-timeout"
    );
    assert_eq!(version(node.run(act(How::Add(1)))), 4);
    assert_eq!(apart.0.load(Ordering::Relaxed), 3, "and nothing else does");
}

#[test]
fn r30_a_long_turn_is_told_and_a_long_wait_is_not() {
    let mut node = Node::with_jar();
    for (how, told) in [
        (How::Stall(99), 0),
        (How::Wait(5_000), 0),
        (How::Stall(100), 1),
    ] {
        node.observed.slow_turns.store(0, Ordering::Relaxed);
        node.run(act(how.clone()));
        let slow = node.observed.slow_turns.load(Ordering::Relaxed);
        assert_eq!(slow, told, "{how:?}");
    }
}

#[test]
fn r45_no_events_commit_nothing_and_are_not_remembered() {
    let mut node = Node::with_jar();
    let nothing = || act(How::Nothing).request_id("r");
    match node.run(nothing()) {
        Executed::Unchanged { version, result } => {
            assert_eq!((version, result.unwrap().get()), (2, r#"{"total":10}"#));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(node.log().len(), 2);
    // The request id is still free.
    assert_eq!(version(node.run(act(How::Add(1)).request_id("r"))), 3);
}

#[test]
fn r51_hooks_run_in_order_on_the_state_before_and_the_events_so_far() {
    let mut node = Node::with_jar();
    let commit = view(node.run(act(How::Note("more".into())))).commit;
    let bodies: Vec<_> = commit.events.iter().map(|event| event.body.get()).collect();
    let expected = [
        r#"{"text":"more"}"#,
        r#"{"amount":100}"#,
        r#"{"text":"2 so far, 0 before"}"#,
    ];
    assert_eq!(bodies, expected);
    let state = state_of(node.lane.cached.as_ref().unwrap());
    assert_eq!((state.total, state.notes.len()), (110, 2));
    assert_eq!(state, node.replayed());
}

#[test]
fn r51_a_hook_may_reject_and_then_nothing_is_committed() {
    fails_alone(How::Note("refuse me".into()), "jar.hook", true);
}

#[test]
fn r56_a_rejection_commits_nothing_and_keeps_the_state() {
    fails_alone(How::Reject, "jar.no", true);
}

#[test]
fn an_entry_that_is_too_large_is_refused_before_the_append() {
    let limit = KernelLimits::default().entry_bytes_max;
    fails_alone(How::Large(limit), "wow.command.events-too-large", true);
    let mut node = Node::with_jar();
    let (appends, _) = node.calls(Call::Append, |node| node.run(act(How::Large(limit))));
    assert_eq!(appends, 0);
    assert_eq!(version(node.run(act(How::Large(limit - 100)))), 3);
}

#[test]
fn an_event_that_json_cant_hold_fails_its_command() {
    fails_alone(How::Unwritable, "wow.command.unwritable", true);
}

#[test]
fn a_number_that_is_none_fails_its_command_in_an_event_and_in_a_result() {
    fails_alone(How::NotANumber, "wow.command.unwritable", true);
    fails_alone(How::NotAResult, "wow.command.unwritable", true);
    let mut node = Node::with_jar();
    let Executed::Failed(error) = node.run(act(How::NotANumber)) else {
        panic!("it was not refused");
    };
    let told = error.to_string();
    assert!(told.contains("weighed") && told.contains("NaN"), "{told}");
}
