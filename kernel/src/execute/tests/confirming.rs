//! Answers reached on a cached state are confirmed before they are given (R58).

use super::*;

/// What is answered without a commit, on a jar with 10 in it.
fn refusals() -> Vec<(&'static str, Submission)> {
    let too_large = KernelLimits::default().entry_bytes_max;
    vec![
        ("rejection", act(How::Take(15))),
        ("no events", act(How::Nothing)),
        ("guard", to_jar(Open { name: "jam".into() })),
        ("nothing to recover", builtin("recover_aggregate")),
        ("version mismatch", act(How::Add(1)).expected_version(3)),
        ("too large", act(How::Large(too_large))),
    ]
}

#[test]
fn r58_a_refusal_on_a_cached_state_is_confirmed_by_one_read() {
    for (what, request) in refusals() {
        for is_named in [true, false] {
            let mut node = Node::with_jar();
            let request = match is_named {
                true => request.clone().request_id("r"),
                false => request.clone(),
            };
            let command = node.build(request);
            let probes = node.faults.calls(Call::Probe);
            let (reads, answer) = node.reads(|node| node.execute(&command));
            assert!(!matches!(answer, Executed::Committed(_)), "{what}");
            assert_eq!(node.faults.calls(Call::Probe) - probes, 1, "{what}");
            // An impure command with an id of its caller's was looked up before (R42).
            let looked_up = u64::from(is_named && !what.contains("recover"));
            assert_eq!(reads, 1 + looked_up, "{what}");
            assert_eq!(node.cached_version(), Some(2), "{what}");
        }
    }
}

#[test]
fn r58_a_refusal_on_a_state_loaded_for_the_command_needs_no_second_read() {
    for (what, request) in refusals() {
        let mut node = Node::with_jar();
        node.lane.cached = None;
        let command = node.build(request);
        let (reads, answer) = node.reads(|node| node.execute(&command));
        assert!(!matches!(answer, Executed::Committed(_)), "{what}");
        assert_eq!(reads, 1, "{what}: the load alone");
        assert_eq!(node.cached_version(), Some(2), "{what}");
    }
}

#[test]
fn r58_a_refusal_on_a_state_that_has_moved_is_decided_again() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        let mut other = node.beside(2);
        assert_eq!(version(other.run(act(How::Add(10)))), 3);
        let taken = view(node.run(how(How::Take(15))));
        assert_eq!(taken.commit.version, 4);
        assert_eq!(node.observed.conflicts.load(Ordering::Relaxed), 1);
        assert_eq!(node.replayed().total, 5);
    }
}

#[test]
fn r58_an_expected_version_is_compared_with_the_newest() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    assert_eq!(version(other.run(act(How::Add(10)))), 3);
    assert_eq!(version(node.run(act(How::Add(1)).expected_version(3))), 4);
}

#[test]
fn r58_an_aggregate_that_was_deleted_or_made_meanwhile_is_seen() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    assert_eq!(version(other.run(builtin("delete_aggregate"))), 3);
    let answer = node.run(to_jar(Put { amount: 1 }));
    assert_eq!(code(answer), "wow.aggregate.deleted");

    let mut early = Node::new(AccessMode::Open);
    assert_eq!(code(early.run(act(How::Add(1)))), "wow.aggregate.not-found");
    let mut other = early.beside(2);
    assert_eq!(version(other.run(to_jar(Open { name: "jam".into() }))), 1);
    assert_eq!(version(early.run(act(How::Add(1)))), 2);
}

#[test]
fn r58_a_request_that_committed_elsewhere_is_found_by_the_same_read() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        let mut other = node.beside(2);
        // The other node commits while this one is about to look.
        let command = node.build(how(How::Take(15)).request_id("r"));
        let delay = [Fault::Delay(Duration::from_secs(1))];
        node.faults.script(Call::Probe, delay);
        let clock = node.clock.clone();
        let looking = node.start(&command);
        assert_eq!(version(other.run(act(How::Add(10)))), 3);
        assert_eq!(version(other.run(how(How::Take(15)).request_id("r"))), 4);
        assert_eq!(known(finish(&clock, looking)), (4, true));
        assert_eq!(node.cached_version(), None, "the state was behind");
    }
}

#[test]
fn r58_an_answer_that_cant_be_confirmed_is_not_given() {
    for (what, request) in refusals() {
        let mut node = Node::with_jar();
        node.faults.script(Call::Probe, [Fault::Refuse]);
        let answer = node.run(request);
        assert_eq!(code(answer), "wow.storage.unavailable", "{what}");
        assert_eq!(node.cached_version(), Some(2), "{what}");
    }
}

#[test]
fn r58_a_state_that_keeps_moving_ends_at_the_conflict_limit() {
    let mut node = Node::with_jar();
    node.kernel.limits.conflict_retries = 3;
    let mut other = node.beside(2);
    let command = node.build(act(How::Take(1_000)));
    let clock = node.clock.clone();
    // Every state is old by the time it is confirmed: a snapshot of the lane is put back.
    let stale = node.lane.cached.clone();
    assert_eq!(version(other.run(act(How::Add(1)))), 3);
    assert_eq!(
        code(node.execute(&command)),
        "jar.empty",
        "loaded anew, and confirmed so"
    );
    node.lane.cached = stale;
    node.kernel.limits.conflict_retries = 0;
    let answer = finish(&clock, node.kernel.execute(&mut node.lane, &command));
    assert_eq!(code(answer), "wow.command.conflict");
}
