//! Commands declared pure: their look-up waits until anything but a commit is to be answered (R43).

use super::*;

const REQUEST: &str = "r";

/// What ends in something else than a commit, and how that is answered.
fn other_answers() -> Vec<(&'static str, Submission, &'static str)> {
    let limit = KernelLimits::default().entry_bytes_max;
    let of = |how| act_purely(how);
    vec![
        ("rejection", of(How::Reject), "jar.no"),
        (
            "hook's rejection",
            of(How::Note("refuse me".into())),
            "jar.hook",
        ),
        ("no events", of(How::Nothing), "unchanged"),
        ("panic", of(How::Panic), "wow.command.panicked"),
        ("panic of evolve", of(How::Poison), "wow.command.panicked"),
        ("timeout", of(How::Never), "wow.command.decide-timeout"),
        (
            "too large",
            of(How::Large(limit)),
            "wow.command.events-too-large",
        ),
        ("unwritable", of(How::Unwritable), "wow.command.unwritable"),
        (
            "version mismatch",
            of(How::Add(1)).expected_version(77),
            "wow.command.version-mismatch",
        ),
    ]
}

fn told(executed: Executed) -> String {
    match executed {
        Executed::Unchanged { .. } => "unchanged".to_owned(),
        other => code(other),
    }
}

/// A node that can find requests in storage alone, with a lane that is warm or cold.
fn node(is_warm: bool) -> Node {
    let mut node = Node::with_jar();
    node.kernel.loader.recent_requests = 0;
    node.lane.cached = None;
    if is_warm {
        unchanged(node.run(act(How::Nothing)));
        assert_eq!(node.cached_version(), Some(2));
    }
    node
}

#[test]
fn r43_on_the_way_to_a_commit_no_look_up_is_made() {
    for is_warm in [true, false] {
        let mut node = node(is_warm);
        let command = node.build(act_purely(How::Add(1)).request_id(REQUEST));
        let (reads, committed) = node.reads(|node| node.execute(&command));
        assert_eq!(version(committed), 3);
        assert_eq!(reads, u64::from(!is_warm), "the cold state, and no more");
    }
}

#[test]
fn r43_the_unique_key_finds_the_duplicate_of_a_commit() {
    for is_warm in [true, false] {
        let mut node = node(is_warm);
        let add = || act_purely(How::Add(1)).request_id(REQUEST);
        assert_eq!(version(node.run(add())), 3);
        if !is_warm {
            node.lane.cached = None;
        }
        assert_eq!(known(node.run(add())), (3, true));
        assert_eq!(node.cached_version(), Some(3), "it is still the newest");
        assert_eq!(node.log().len(), 3);
    }
}

#[test]
fn r43_a_retry_gets_the_first_result_whatever_deciding_would_answer_now() {
    for (what, request, _) in other_answers() {
        for is_warm in [true, false] {
            let mut node = node(is_warm);
            let first = node.run(act_purely(How::Add(1)).request_id(REQUEST));
            assert_eq!(version(first), 3);
            if !is_warm {
                node.lane.cached = None;
            }
            let retry = node.run(request.clone().request_id(REQUEST));
            assert_eq!(known(retry), (3, true), "{what}, warm: {is_warm}");
        }
    }
}

#[test]
fn r43_any_other_answer_is_given_after_one_look() {
    for (what, request, expected) in other_answers() {
        for is_warm in [true, false] {
            let mut node = node(is_warm);
            let command = node.build(request.clone().request_id(REQUEST));
            let (reads, answer) = node.reads(|node| node.execute(&command));
            assert_eq!(told(answer), expected, "{what}, warm: {is_warm}");
            let load = u64::from(!is_warm);
            assert_eq!(reads, load + 1, "{what}, warm: {is_warm}");
            assert_eq!(node.log().len(), 2, "{what}");
        }
    }
}

#[test]
fn r43_no_answer_is_given_where_the_look_fails() {
    for (what, request, _) in other_answers() {
        for is_warm in [true, false] {
            let mut node = node(is_warm);
            let looks = [Call::FindRequest, Call::Probe];
            node.faults.always(&looks, Fault::Refuse);
            let answer = node.run(request.clone().request_id(REQUEST));
            assert_eq!(code(answer), "wow.storage.unavailable", "{what}");
        }
    }
}

#[test]
fn r43_an_impure_command_was_looked_up_before_and_is_not_again() {
    for (how, expected) in [
        (How::Panic, "wow.command.panicked"),
        (How::Never, "wow.command.decide-timeout"),
    ] {
        let mut node = node(true);
        let command = node.build(act(how).request_id(REQUEST));
        let (reads, answer) = node.reads(|node| node.execute(&command));
        assert_eq!((reads, code(answer).as_str()), (1, expected));
    }
}

#[test]
fn r43_the_conflict_limit_is_told_after_a_last_look() {
    let mut node = Node::with_jar();
    node.kernel.limits.conflict_retries = 0;
    let mut other = node.beside(2);
    assert_eq!(version(other.run(act(How::Add(1)))), 3);

    let command = node.build(act_purely(How::Add(1)).request_id(REQUEST));
    node.faults
        .script(Call::FindRequest, [Fault::Delay(Duration::from_secs(1))]);
    let clock = node.clock.clone();
    let giving_up = node.start(&command);
    let elsewhere = other.run(act_purely(How::Add(1)).request_id(REQUEST));
    assert_eq!(version(elsewhere), 4);
    assert_eq!(known(finish(&clock, giving_up)), (4, true));
}

#[test]
fn r43_a_retry_gets_the_first_result_though_the_aggregate_cant_be_loaded_now() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        assert_eq!(version(node.run(how(How::Add(1)).request_id(REQUEST))), 3);
        node.append_event("jar_broken", 1, "{}");
        node.lane.cached = None;
        let retry = node.run(how(How::Add(1)).request_id(REQUEST));
        assert_eq!(known(retry), (3, true));
        let another = node.run(how(How::Add(1)).request_id("another"));
        assert_eq!(code(another), "wow.log.event-unreadable");
    }
}
