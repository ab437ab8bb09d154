//! The guards: scope, then creation rule, then deleted, then the expected version (R10, R11, R53,
//! R57).

use super::*;

#[test]
fn r10_each_creation_rule_meets_what_exists_and_what_doesnt() {
    let open = || to_jar(Open { name: "jam".into() });
    let put = || to_jar(Put { amount: 1 });
    let cases = [
        ("creates", open(), "1", "wow.aggregate.exists"),
        ("updates", act(How::Add(1)), "wow.aggregate.not-found", "3"),
        ("upserts", put(), "1", "3"),
    ];
    for (rule, request, on_nothing, on_jar) in cases {
        let mut node = Node::new(AccessMode::Open);
        assert_eq!(told(node.run(request.clone())), on_nothing, "{rule}");
        let mut node = Node::with_jar();
        assert_eq!(told(node.run(request)), on_jar, "{rule}");
    }
}

/// The version committed, or the error's code.
fn told(executed: Executed) -> String {
    match executed {
        Executed::Committed(view) => view.commit.version.to_string(),
        other => code(other),
    }
}

#[test]
fn r11_a_deleted_aggregate_refuses_all_but_recovery() {
    let mut node = Node::with_jar();
    let view = view(node.run(builtin("delete_aggregate")));
    assert!(view.facts.deleted);
    let refused = [
        (act(How::Add(1)), "wow.aggregate.deleted"),
        (to_jar(Put { amount: 1 }), "wow.aggregate.deleted"),
        (builtin("delete_aggregate"), "wow.aggregate.deleted"),
        // It is still there, so it can't be created anew.
        (to_jar(Open { name: "new".into() }), "wow.aggregate.exists"),
    ];
    for is_warm in [true, false] {
        for (request, expected) in refused.clone() {
            if !is_warm {
                node.lane.cached = None;
            }
            assert_eq!(code(node.run(request)), expected);
        }
    }
    assert_eq!(version(node.run(builtin("recover_aggregate"))), 4);
    assert_eq!(version(node.run(act(How::Add(1)))), 5);
    assert_eq!(node.replayed().total, 11);
}

#[test]
fn r11_recovering_what_is_not_deleted_commits_nothing() {
    let mut node = Node::with_jar();
    assert_eq!(unchanged(node.run(builtin("recover_aggregate"))), 2);
    let mut nothing = Node::new(AccessMode::Open);
    let answer = nothing.run(builtin("recover_aggregate"));
    assert_eq!(code(answer), "wow.aggregate.not-found");
}

#[test]
fn r11_a_types_own_command_that_may_come_to_the_deleted_is_decided_always() {
    let mut node = Node::with_jar();
    let revive = || to_jar(Revive { amount: 1 });
    assert_eq!(version(node.run(revive())), 3);
    assert_eq!(version(node.run(builtin("delete_aggregate"))), 4);
    let after = view(node.run(revive()));
    assert_eq!(after.commit.version, 5);
    assert!(after.facts.deleted, "only the system's own brings it back");
}

#[test]
fn r53_a_version_that_is_not_the_current_one_is_refused_without_a_retry() {
    let mut node = Node::with_jar();
    for expected in [0, 1, 3, Version::MAX] {
        let answer = node.run(act(How::Add(1)).expected_version(expected));
        let mismatch = CommandError::VersionMismatch {
            expected,
            current: 2,
        };
        assert_eq!(failure(answer), mismatch);
    }
    assert_eq!(node.effects.decided(), 2, "nothing was decided");
    assert_eq!(node.observed.conflicts.load(Ordering::Relaxed), 0);
    assert_eq!(version(node.run(act(How::Add(1)).expected_version(2))), 3);
}

#[test]
fn r53_a_creation_may_expect_version_0() {
    let mut node = Node::new(AccessMode::Open);
    let open = || to_jar(Open { name: "jam".into() });
    let answer = node.run(open().expected_version(1));
    assert_eq!(code(answer), "wow.command.version-mismatch");
    assert_eq!(version(node.run(open().expected_version(0))), 1);
}

/// A command for a safe of Ann's in the space "home".
fn store(principal: Principal, owner: &str, space: &str) -> Submission {
    Submission::typed(Store { amount: 1 })
        .aggregate_id("s")
        .principal(principal)
        .owner(owner)
        .space(space)
}

fn service() -> Principal {
    Principal::service("billing")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn r57_anothers_aggregate_is_hidden_from_callers_and_named_to_services() {
    let nobody = Principal::anonymous;
    let cases = [
        (AccessMode::Open, nobody(), "ann", "home", "2"),
        (
            AccessMode::Open,
            nobody(),
            "bob",
            "home",
            "wow.access.owner",
        ),
        (
            AccessMode::Open,
            nobody(),
            "ann",
            "work",
            "wow.access.space",
        ),
        (
            AccessMode::Open,
            nobody(),
            "bob",
            "work",
            "wow.access.owner",
        ),
        (AccessMode::Jwt, user("ann"), "ann", "home", "2"),
        (
            AccessMode::Jwt,
            user("bob"),
            "bob",
            "home",
            "wow.aggregate.not-found",
        ),
        (
            AccessMode::Jwt,
            user("ann"),
            "ann",
            "work",
            "wow.aggregate.not-found",
        ),
        (
            AccessMode::Jwt,
            nobody(),
            "bob",
            "home",
            "wow.aggregate.not-found",
        ),
        (AccessMode::Jwt, service(), "ann", "home", "2"),
        (
            AccessMode::Jwt,
            service(),
            "bob",
            "home",
            "wow.access.owner",
        ),
        (
            AccessMode::Jwt,
            service(),
            "ann",
            "work",
            "wow.access.space",
        ),
    ];
    for (mode, principal, owner, space, expected) in cases {
        for is_warm in [true, false] {
            let mut node = Node::new(mode);
            assert_eq!(version(node.run(store(service(), "ann", "home"))), 1);
            if !is_warm {
                node.lane.cached = None;
            }
            let answer = told(node.run(store(principal.clone(), owner, space)));
            assert_eq!(answer, expected, "{mode:?} {principal:?} {owner} {space}");
        }
    }
}

#[test]
fn r57_scope_comes_before_creation_and_creation_before_deletion() {
    let lock = |owner: &str| {
        Submission::typed(Lock {})
            .aggregate_id("s")
            .owner(owner)
            .space("home")
    };
    let mut node = Node::new(AccessMode::Open);
    assert_eq!(version(node.run(lock("ann"))), 1);
    let delete = Submission::json("safe", "delete_aggregate", "");
    let delete = delete.aggregate_id("s").owner("ann").space("home");
    assert_eq!(version(node.run(delete)), 2);
    assert_eq!(code(node.run(lock("bob"))), "wow.access.owner");
    assert_eq!(code(node.run(lock("ann"))), "wow.aggregate.exists");
    let late = store(Principal::anonymous(), "ann", "home").expected_version(9);
    assert_eq!(code(node.run(late)), "wow.aggregate.deleted");
}

#[test]
fn r57_the_owner_is_the_one_it_was_given_to() {
    let mut node = Node::new(AccessMode::Jwt);
    let ann = || user("ann");
    assert_eq!(version(node.run(store(ann(), "ann", "home"))), 1);
    let body = r#"{"toOwnerId":"bob"}"#;
    let give = Submission::json("safe", "transfer_owner", body);
    let give = give.aggregate_id("s").principal(ann()).space("home");
    assert_eq!(version(node.run(give)), 2);
    for is_warm in [true, false] {
        if !is_warm {
            node.lane.cached = None;
        }
        let answer = node.run(store(ann(), "ann", "home"));
        assert_eq!(code(answer), "wow.aggregate.not-found");
    }
    assert_eq!(version(node.run(store(user("bob"), "bob", "home"))), 3);
}
