//! A request that has committed before: R12, R13, R40, R41 and R42.

use super::*;

/// Where the kernel finds what a request committed.
#[derive(Debug, Clone, Copy)]
enum Found {
    InTheSet,
    InStorage,
}

const BOTH: [Found; 2] = [Found::InTheSet, Found::InStorage];

/// A node with jar `j`, whose requests are found in one way only.
fn node_finding(found: Found, mode: AccessMode) -> Node {
    let mut node = Node::new(mode);
    if let Found::InStorage = found {
        node.kernel.loader.recent_requests = 0;
    }
    let name = "jam".to_owned();
    let opened = node.run(to_jar(Open { name }).principal(user("ann")));
    assert_eq!(version(opened), 1);
    node
}

/// Adds 10 to jar `j` for request `r` of Ann.
fn add() -> Submission {
    act(How::Add(10)).request_id("r").principal(user("ann"))
}

#[test]
fn r40_a_retry_is_answered_with_the_first_result_and_decides_nothing() {
    for found in BOTH {
        let mut node = node_finding(found, AccessMode::Open);
        let first = view(node.run(add())).commit;
        let decided = node.effects.decided();
        match node.run(add()) {
            Executed::Known {
                record,
                key,
                duplicate,
            } => {
                assert!(duplicate, "{found:?}");
                assert_eq!((record.version, key), (2, jar()), "{found:?}");
                assert_eq!(record.command_id, first.command_id, "{found:?}");
                assert_eq!(record.result.unwrap().get(), r#"{"total":10}"#);
            }
            other => panic!("{found:?}: {other:?}"),
        }
        assert_eq!(node.effects.decided(), decided, "{found:?}");
        assert_eq!(node.log().len(), 2, "{found:?}");
    }
}

#[test]
fn r13_anothers_request_id_is_refused_and_nothing_of_its_result_is_shown() {
    for found in BOTH {
        let mut node = node_finding(found, AccessMode::Open);
        assert_eq!(version(node.run(add())), 2);
        let theirs = [
            add().principal(user("bob")),
            add().principal(Principal::anonymous()),
            add().owner("bob"),
            act_purely(How::Reject)
                .request_id("r")
                .principal(user("ann")),
            to_jar(Open { name: "r".into() })
                .request_id("r")
                .principal(user("ann")),
        ];
        for (index, request) in theirs.into_iter().enumerate() {
            let answer = node.run(request);
            assert_eq!(
                code(answer),
                "wow.command.request-id-reused",
                "{found:?} {index}"
            );
        }
        assert_eq!(node.log().len(), 2, "{found:?}");
    }
}

#[test]
fn r13_the_request_id_of_another_aggregate_is_refused() {
    let mut node = node_finding(Found::InTheSet, AccessMode::Open);
    assert_eq!(version(node.run(add())), 2);
    let mut other = node.beside(2);
    let put = |id: &str| {
        Submission::typed(Put { amount: 1 })
            .aggregate_id(id)
            .principal(user("ann"))
    };
    assert_eq!(version(other.run(put("other").request_id("p"))), 1);
    // A lane of another jar, where the command names that jar.
    let mut third = node.beside(3);
    let answer = third.run(put("third").request_id("p"));
    assert_eq!(code(answer), "wow.command.request-id-reused");
}

#[test]
fn r13_in_jwt_mode_nobody_is_ever_shown_a_stored_result() {
    for found in BOTH {
        let mut node = node_finding(found, AccessMode::Jwt);
        let put = || to_jar(Put { amount: 1 }).request_id("p");
        assert_eq!(version(node.run(put())), 2);
        let answer = node.run(put());
        assert_eq!(code(answer), "wow.command.request-id-reused", "{found:?}");
        assert_eq!(node.log().len(), 2, "{found:?}");
    }
}

/// Creates a jar for which nobody names an id.
fn create() -> Submission {
    let name = "jam".to_owned();
    Submission::typed(Open { name }).request_id("c")
}

#[test]
fn r12_a_retried_creation_is_answered_with_the_first_aggregate() {
    let mut node = Node::new(AccessMode::Open);
    let first = view(node.run(create())).commit;
    let mut again = node.beside(2);
    match again.run(create()) {
        Executed::Known { key, duplicate, .. } => {
            assert_eq!((key, duplicate), (first.key.clone(), true))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn r12_of_two_first_tries_one_commits_and_the_other_is_its_duplicate() {
    let mut node = Node::new(AccessMode::Open);
    let mut other = node.beside(2);
    let (one, two) = (node.build(create()), other.build(create()));
    assert_ne!(one.key().id, two.key().id, "both are first tries");
    // Both are decided before either is appended.
    other
        .faults
        .script(Call::Append, [Fault::Delay(Duration::from_secs(1))]);
    let clock = node.clock.clone();
    let waiting = other.start(&two);
    let first = view(node.execute(&one)).commit;
    match finish(&clock, waiting) {
        Executed::Known {
            record,
            key,
            duplicate,
        } => {
            assert_eq!((key, duplicate), (first.key.clone(), true));
            assert_eq!(record.command_id, first.command_id);
        }
        other => panic!("{other:?}"),
    }
    let second = other.store.read_aggregate(two.key(), 0, 9, 9);
    assert!(finish(&clock, second).unwrap().is_empty());
}

#[test]
fn r13_a_creation_with_anothers_request_id_is_refused() {
    let mut node = Node::new(AccessMode::Open);
    assert_eq!(version(node.run(create())), 1);
    let mut other = node.beside(2);
    let answer = other.run(create().principal(user("bob")));
    assert_eq!(code(answer), "wow.command.request-id-reused");
}

#[test]
fn r41_a_cold_lane_knows_what_snapshot_and_log_hold_of_the_last_requests() {
    let mut node = Node::with_jar();
    let request = |version: Version| act(How::Add(1)).request_id(format!("r{version}"));
    for expected in 3..=80 {
        let committed = node.run(request(expected));
        assert_eq!(version(committed), expected);
        // The set is written at 64; 70 and 71 keep that one, and 72 on comes from the log.
        if [64, 70, 71].contains(&expected) {
            node.save_snapshot(|_| {});
        }
    }
    let mut cold = node.beside(2);
    assert_eq!(known(cold.run(request(80))), (80, true));
    let (reads, ()) = cold.reads(|cold| {
        for version in 3..=80 {
            assert_eq!(known(cold.run(request(version))), (version, true));
        }
    });
    assert_eq!(reads, 0, "a request was asked of storage");
    assert_eq!(cold.effects.decided(), 0);
}

#[test]
fn r41_a_request_older_than_the_set_is_found_in_storage() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        let old = || how(How::Add(1)).request_id("old");
        assert_eq!(version(node.run(old())), 3);
        for _ in 0..256 {
            node.run(act_purely(How::Add(1)));
        }
        assert_eq!(known(node.run(old())), (3, true));
        assert_eq!(node.cached_version(), Some(259), "the state was the newest");
    }
}

#[test]
fn r42_what_is_certain_costs_no_read_and_everything_else_one() {
    let mut node = Node::with_jar();
    let add = |how: fn(How) -> Submission| how(How::Add(1));
    let cases = [
        ("made by admission", add(act), 0),
        ("new, of an impure command", add(act).request_id("i"), 1),
        ("found in the set", add(act).request_id("i"), 0),
        ("new, of a pure command", add(act_purely).request_id("p"), 0),
        ("found in the set", add(act_purely).request_id("p"), 0),
    ];
    for (what, request, expected) in cases {
        let command = node.build(request);
        let (reads, answer) = node.reads(|node| node.execute(&command));
        assert!(!matches!(answer, Executed::Failed(_)), "{what}: {answer:?}");
        assert_eq!(reads, expected, "{what}");
    }
}

#[test]
fn r42_a_creation_with_ids_made_by_admission_costs_no_read() {
    let mut node = Node::new(AccessMode::Open);
    let name = "jam".to_owned();
    let command = node.build(Submission::typed(Open { name }));
    let (reads, created) = node.reads(|node| node.execute(&command));
    assert_eq!((reads, version(created)), (0, 1));
}

#[test]
fn r42_a_look_up_that_fails_is_no_no() {
    let mut node = Node::with_jar();
    node.faults.script(Call::FindRequest, [Fault::Refuse]);
    let answer = node.run(act(How::Add(1)).request_id("r"));
    assert_eq!(code(answer), "wow.storage.unavailable");
    assert_eq!(
        (node.cached_version(), node.effects.decided()),
        (Some(2), 2)
    );
    assert_eq!(version(node.run(act(How::Add(1)).request_id("r"))), 3);
}

#[test]
fn r40_a_state_that_is_behind_the_commit_found_is_not_kept() {
    for how in [act as fn(How) -> Submission, act_purely] {
        let mut node = Node::with_jar();
        let mut other = node.beside(2);
        let request = || how(How::Add(1)).request_id("r");
        assert_eq!(version(other.run(request())), 3);
        assert_eq!(known(node.run(request())), (3, true));
        assert_eq!(node.cached_version(), None);
        assert_eq!(version(node.run(act(How::Add(1)))), 4);
    }
}

#[test]
fn r40_a_request_of_another_aggregate_says_nothing_of_this_ones_state() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    let elsewhere = Submission::typed(Put { amount: 1 }).aggregate_id("elsewhere");
    for expected in 1..=5 {
        let put = elsewhere.clone().request_id(format!("r{expected}"));
        assert_eq!(version(other.run(put)), expected);
    }
    let answer = node.run(to_jar(Put { amount: 1 }).request_id("r5"));
    assert_eq!(code(answer), "wow.command.request-id-reused");
    assert_eq!(node.cached_version(), Some(2));
}
