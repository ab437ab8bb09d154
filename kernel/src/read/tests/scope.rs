//! Who may read what: identity facts, read rules and scope.

use super::*;
use crate::access::SERVICE_ROLE;

fn user(subject: &str) -> Principal {
    Principal {
        subject: Some(Arc::from(subject)),
        ..Principal::anonymous()
    }
}

fn owned(owner: Option<&str>, space: Option<&str>, principal: Principal) -> ReadRequest {
    let mut read = ReadRequest {
        principal,
        ..request("owned")
    };
    read.facts
        .owner
        .extend(owner.map(|owner| (Source::Path, owner.to_owned())));
    read.facts
        .space
        .extend(space.map(|space| (Source::Header, space.to_owned())));
    read
}

/// What a read of the aggregate `owned/1` comes to, in each of its forms alike.
fn outcome(fixture: &Fixture, read: &ReadRequest) -> Result<Version, CommandError> {
    let reader = &fixture.reader;
    let state = done(reader.state(read)).map(|state| state.version);
    let others = [
        done(reader.state_at_version(read, 1)).map(|state| state.version),
        done(reader.state_at_time(read, 0)).map(|state| state.version),
        done(reader.commits(read, 1..=1)).map(|read| read.commits[0].version),
        done(reader.trace(read, 1..=1, 1)).map(|read| read.commits[0].commit.version),
    ];
    for other in others {
        assert_eq!(other, state);
    }
    state
}

#[test]
fn r57_to_callers_with_tokens_anothers_aggregate_does_not_exist() {
    let fixture = Fixture::new(AccessMode::Jwt);
    fixture.append_for(&key("owned"), 1, added(1), ("ann", "shop"));
    let ann = || user("ann");
    let in_shop = Principal {
        space: Some(Arc::from("shop")),
        ..ann()
    };
    let service = Principal {
        roles: vec![Arc::from(SERVICE_ROLE)],
        ..user("billing")
    };
    for (read, expected) in [
        (owned(Some("ann"), Some("shop"), ann()), Ok(1)),
        (owned(None, Some("shop"), ann()), Ok(1)),
        (owned(None, None, in_shop), Ok(1)),
        (
            owned(Some("bob"), Some("shop"), user("bob")),
            Err(CommandError::NotFound),
        ),
        (
            owned(Some("ann"), Some("office"), ann()),
            Err(CommandError::NotFound),
        ),
        (owned(Some("ann"), None, ann()), Err(CommandError::NotFound)),
        (owned(Some("ann"), Some("shop"), service.clone()), Ok(1)),
        (
            owned(Some("bob"), Some("shop"), service.clone()),
            Err(CommandError::OtherOwner),
        ),
        (
            owned(Some("ann"), Some("office"), service),
            Err(CommandError::OtherSpace),
        ),
        (
            owned(Some("ann"), Some("shop"), Principal::anonymous()),
            Err(CommandError::Unauthenticated),
        ),
    ] {
        assert_eq!(outcome(&fixture, &read), expected, "{read:?}");
    }
    let nowhere = Fixture::new(AccessMode::Jwt);
    let hidden = owned(Some("bob"), Some("shop"), user("bob"));
    assert_eq!(outcome(&fixture, &hidden), outcome(&nowhere, &hidden));
}

#[test]
fn r57_in_open_mode_anothers_aggregate_is_named_as_such() {
    let fixture = Fixture::new(AccessMode::Open);
    fixture.append_for(&key("owned"), 1, added(1), ("ann", "shop"));
    let nobody = Principal::anonymous;
    for (read, expected) in [
        (owned(Some("ann"), Some("shop"), nobody()), Ok(1)),
        (
            owned(Some("bob"), Some("shop"), nobody()),
            Err(CommandError::OtherOwner),
        ),
        (
            owned(Some("ann"), Some("office"), nobody()),
            Err(CommandError::OtherSpace),
        ),
        (
            owned(Some("ann"), None, nobody()),
            Err(CommandError::OtherSpace),
        ),
    ] {
        assert_eq!(outcome(&fixture, &read), expected, "{read:?}");
    }
}

#[test]
fn r57_the_scope_is_that_of_the_aggregate_as_it_is_now() {
    let fixture = Fixture::new(AccessMode::Jwt);
    fixture.append_for(&key("owned"), 1, added(1), ("ann", ""));
    let transfer = recorded("owner_transferred", &json!({ "toOwnerId": "bob" }));
    fixture.append_for(&key("owned"), 2, transfer, ("ann", ""));
    let reader = &fixture.reader;
    let at_first = |who: &str| {
        let read = owned(Some(who), None, user(who));
        done(reader.state_at_version(&read, 1)).map(|state| state.version)
    };
    assert_eq!(at_first("ann"), Err(CommandError::NotFound));
    assert_eq!(at_first("bob"), Ok(1));
}

#[test]
fn r57_a_type_without_owners_has_no_owners_scope() {
    let fixture = Fixture::new(AccessMode::Open);
    fixture.append_for(&key("ledger"), 1, added(1), ("ann", ""));
    let mut read = request("ledger");
    read.facts.owner.push((Source::Header, "bob".to_owned()));
    assert!(done(fixture.reader.state(&read)).is_ok());
}

#[test]
fn r57_another_tenants_aggregate_does_not_exist() {
    let fixture = Fixture::counted(1);
    let mut read = request("ledger");
    read.facts.tenant.push((Source::Header, "acme".to_owned()));
    assert_eq!(
        done(fixture.reader.state(&read)).unwrap_err(),
        CommandError::NotFound
    );
}

#[test]
fn r4_a_caller_that_may_not_read_learns_nothing_of_what_exists() {
    let fixture = Fixture::new(AccessMode::Jwt);
    fixture.append(&key("audited"), 1, added(1));
    let auditor = Principal {
        roles: vec![Arc::from("auditor")],
        ..user("ann")
    };
    let read = |principal: &Principal, id: &str| {
        let mut read = ReadRequest {
            principal: principal.clone(),
            ..request("audited")
        };
        read.facts.aggregate_id[0].1 = id.to_owned();
        done(fixture.reader.state(&read)).map(|state| state.version)
    };
    for id in ["1", "2"] {
        let nobody = Principal::anonymous();
        assert_eq!(read(&nobody, id), Err(CommandError::Unauthenticated));
        assert_eq!(read(&user("ann"), id), Err(CommandError::Denied));
    }
    assert_eq!(read(&auditor, "1"), Ok(1));
    assert_eq!(read(&auditor, "2"), Err(CommandError::NotFound));
}

#[test]
fn r3_the_identity_of_a_read_is_resolved_as_a_commands_is() {
    let fixture = Fixture::new(AccessMode::Jwt);
    let mut personal = key("personal");
    personal.id = AggregateId::trusted("ann");
    fixture.append_for(&personal, 1, added(1), ("ann", ""));
    // The owner is the id, and the token's subject the owner.
    let by_subject = ReadRequest {
        facts: IdentityFacts::default(),
        principal: user("ann"),
        ..request("personal")
    };
    assert_eq!(
        done(fixture.reader.state(&by_subject)).unwrap().key,
        personal
    );
    let mut by_path = by_subject.clone();
    by_path.facts.owner.push((Source::Path, "ann".to_owned()));
    assert!(done(fixture.reader.state(&by_path)).is_ok());
    by_path.principal = user("bob");
    let conflict = done(fixture.reader.state(&by_path)).unwrap_err();
    assert_eq!(conflict.code(), "wow.command.identity-conflict");
    let mut empty = by_subject;
    empty.facts.tenant.push((Source::Header, String::new()));
    let invalid = done(fixture.reader.state(&empty)).unwrap_err();
    assert_eq!(invalid.code(), "wow.command.identity-invalid");
    let mut nameless = ReadRequest {
        principal: user("ann"),
        ..request("ledger")
    };
    nameless.facts.aggregate_id.clear();
    let missing = done(fixture.reader.state(&nameless)).unwrap_err();
    assert_eq!(missing.code(), "wow.command.identity-invalid");
}

#[test]
fn r2_an_unknown_type_is_told_so() {
    let fixture = Fixture::counted(1);
    let error = done(fixture.reader.state(&request("nothing"))).unwrap_err();
    assert_eq!(error.code(), "wow.command.type-unknown");
}
