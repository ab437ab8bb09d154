//! Two nodes with one aggregate: conflicts are decided again, and end somewhere (R52).

use super::*;

fn add(amount: i64) -> Submission {
    act(How::Add(amount))
}

/// Runs a command while another node commits whenever this one waits.
fn run_against(node: &mut Node, other: &mut Node, command: &Arc<BuiltCommand>) -> Executed {
    let pause = Fault::Delay(Duration::from_micros(1));
    node.faults.always(&[Call::Append], pause);
    let clock = node.clock.clone();
    let mut execution = node.start(command);
    loop {
        version(other.run(act(How::Add(1))));
        clock.advance(clock.next_wake().expect("it waits"));
        if let Poll::Ready(answer) = poll(&mut execution) {
            return answer;
        }
    }
}

#[test]
fn r52_a_conflict_is_decided_again_on_the_new_state() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        let mut other = node.beside(2);
        assert_eq!(version(other.run(act(How::Add(5)))), 3);
        let before = node.clock.monotonic();
        let view = view(node.run(how(How::Add(1)).request_id("r")));
        assert_eq!(view.commit.version, 4);
        let result = view.commit.result.as_ref().unwrap();
        assert_eq!(result.get(), r#"{"total":16}"#, "decided on the new state");
        assert_eq!(node.observed.conflicts.load(Ordering::Relaxed), 1);
        let pause = node.clock.monotonic() - before;
        assert!(pause <= Duration::from_millis(4), "{pause:?}");
        assert_eq!(
            node.replayed(),
            state_of(node.lane.cached.as_ref().unwrap())
        );
    }
}

#[test]
fn r52_conflicts_that_dont_end_are_given_up_after_the_limit() {
    for retries in [0, 3, 10] {
        let mut node = Node::with_jar();
        node.kernel.limits.conflict_retries = retries;
        let mut other = node.beside(2);
        let decided = node.effects.decided();
        let command = node.build(act(How::Add(1)));
        let answer = run_against(&mut node, &mut other, &command);
        assert_eq!(code(answer), "wow.command.conflict");
        let tries = node.effects.decided() - decided;
        assert_eq!(tries, retries as usize + 1);
        assert_eq!(node.cached_version(), None);
        let ours = |commit: &Commit| commit.command_id == command.command_id;
        assert!(!node.log().iter().any(ours), "and nothing was committed");
    }
}

#[test]
fn r52_pauses_grow_and_are_jittered() {
    let paused = |seed: u64| {
        let mut node = Node::with_jar().beside(seed);
        let mut other = node.beside(seed + 100);
        node.run(act(How::Nothing));
        let command = node.build(act(How::Add(1)));
        let before = node.clock.monotonic();
        run_against(&mut node, &mut other, &command);
        node.clock.monotonic() - before
    };
    let all: Vec<_> = (1..20).map(paused).collect();
    let bound: Duration = (1..=10_u32)
        .map(|tries| Duration::from_millis((2 << tries).min(200)))
        .sum();
    assert!(all.iter().all(|pause| *pause <= bound), "{all:?}");
    let longest = all.iter().max().unwrap();
    assert!(*longest > bound / 2, "they grow: {all:?}");
    assert!(
        all.windows(2).any(|two| two[0] != two[1]),
        "jitter: {all:?}"
    );
}

#[test]
fn r52_after_a_conflict_the_request_is_looked_up_again() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        let mut other = node.beside(2);
        let command = node.build(how(How::Add(1)).request_id("r"));
        let delay = [Fault::Delay(Duration::from_secs(1))];
        node.faults.script(Call::Append, delay);
        let clock = node.clock.clone();
        let appending = node.start(&command);
        assert_eq!(version(other.run(how(How::Add(1)).request_id("r"))), 3);
        assert_eq!(known(finish(&clock, appending)), (3, true));
        assert_eq!(node.effects.decided(), 3, "it was decided once only");
        assert_eq!(node.log().len(), 3);
    }
}

#[test]
fn r52_after_a_conflict_the_guards_are_asked_again() {
    let cases = [
        (
            add(1),
            add(1).expected_version(2),
            "wow.command.version-mismatch",
        ),
        (builtin("delete_aggregate"), add(1), "wow.aggregate.deleted"),
    ];
    for (meanwhile, request, expected) in cases {
        let mut node = Node::with_jar();
        let mut other = node.beside(2);
        assert_eq!(version(other.run(meanwhile)), 3);
        assert_eq!(code(node.run(request)), expected);
        assert_eq!(node.cached_version(), Some(3), "the new state is kept");
    }
}

#[test]
fn r44_the_two_keys_are_told_apart_by_what_is_looked_up() {
    // The request's key is hit though the version's isn't: the state stays, for it is the newest.
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    let elsewhere = Submission::typed(Put { amount: 1 }).aggregate_id("elsewhere");
    assert_eq!(version(other.run(elsewhere.request_id("r"))), 1);
    let answer = node.run(act_purely(How::Add(1)).request_id("r"));
    assert_eq!(code(answer), "wow.command.request-id-reused");
    assert_eq!(node.cached_version(), Some(2));
}

#[test]
fn r52_storage_that_goes_down_after_a_conflict_ends_it_at_once() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    assert_eq!(version(other.run(act(How::Add(1)))), 3);
    node.faults
        .script(Call::Append, [Fault::None, Fault::Refuse]);
    let before = node.clock.monotonic();
    // Of this attempt nothing was sent, and the last one's outcome is known.
    assert_eq!(code(node.run(act(How::Add(1)))), "wow.storage.unavailable");
    let took = node.clock.monotonic() - before;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(node.cached_version(), Some(3));
}
