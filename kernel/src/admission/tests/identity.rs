//! R3: the sources of each identity fact, pair by pair.

use super::*;
use crate::access::SERVICE_ROLE;
use crate::id::IdFault;
use crate::submission::Source;

/// Has one source say something.
type Say = fn(&mut Submission, &str);

/// A fact: the type and command to try it on, its sources, and how to read it back.
struct Case {
    fact: &'static str,
    aggregate: &'static str,
    command: &'static str,
    sources: Vec<(&'static str, Say)>,
    read: fn(&BuiltCommand) -> String,
}

fn tenant_case() -> Case {
    Case {
        fact: "tenant",
        aggregate: "ownerless",
        command: "ping",
        sources: vec![
            ("path", |s, v| s.facts.tenant.push((Source::Path, v.into()))),
            ("header", |s, v| {
                s.facts.tenant.push((Source::Header, v.into()))
            }),
            ("call", |s, v| s.facts.tenant.push((Source::Call, v.into()))),
            ("token claim", |s, v| s.principal.tenant = Some(v.into())),
        ],
        read: |built| built.identity.key.tenant.to_string(),
    }
}

fn space_case() -> Case {
    Case {
        fact: "space",
        aggregate: "ownerless",
        command: "ping",
        sources: vec![
            ("path", |s, v| s.facts.space.push((Source::Path, v.into()))),
            ("header", |s, v| {
                s.facts.space.push((Source::Header, v.into()))
            }),
            // Two headers name a space.
            ("header", |s, v| {
                s.facts.space.push((Source::Header, v.into()))
            }),
            ("token claim", |s, v| s.principal.space = Some(v.into())),
        ],
        read: |built| built.identity.space.to_string(),
    }
}

fn owner_case() -> Case {
    Case {
        fact: "owner",
        aggregate: "owned",
        command: "ping",
        sources: vec![
            ("path", |s, v| s.facts.owner.push((Source::Path, v.into()))),
            ("header", |s, v| {
                s.facts.owner.push((Source::Header, v.into()))
            }),
            ("token subject", |s, v| s.principal.subject = Some(v.into())),
        ],
        read: |built| built.identity.owner.to_string(),
    }
}

fn id_case() -> Case {
    Case {
        fact: "aggregate id",
        aggregate: "ownerless",
        command: "open",
        sources: vec![
            ("path", |s, v| {
                s.facts.aggregate_id.push((Source::Path, v.into()))
            }),
            ("header", |s, v| {
                s.facts.aggregate_id.push((Source::Header, v.into()))
            }),
            ("body field", |s, v| {
                s.body = Body::Json(serde_json::json!({ "id": v }).to_string().into());
            }),
        ],
        read: |built| built.identity.key.id.to_string(),
    }
}

fn owner_is_id_case() -> Case {
    Case {
        aggregate: "personal",
        sources: [
            id_case().sources,
            vec![("owner", |s, v| s.facts.owner.push((Source::Path, v.into())))],
        ]
        .concat(),
        ..id_case()
    }
}

fn cases() -> [Case; 5] {
    [
        tenant_case(),
        space_case(),
        owner_case(),
        id_case(),
        owner_is_id_case(),
    ]
}

impl Case {
    /// A request that lacks only this fact, by an authenticated caller.
    fn request(&self) -> Submission {
        let mut request = Submission::json(self.aggregate, self.command, "{}");
        if self.fact != "owner" {
            // A service's own claims would be no sources, so this is a role without meaning.
            request.principal = Principal {
                subject: Some("ann".into()),
                ..request.principal
            };
        }
        request
    }

    /// The mode in which the token's subject says nothing of owners, but where it is the case.
    fn fixture(&self) -> Fixture {
        Fixture::new(if self.fact == "owner" {
            AccessMode::Jwt
        } else {
            AccessMode::Open
        })
    }
}

#[test]
fn r3_one_source_is_enough() {
    for case in cases() {
        let fixture = case.fixture();
        for (source, say) in &case.sources {
            let mut request = case.request();
            say(&mut request, "x");
            if case.fact == "owner" && request.principal.subject.is_none() {
                request.principal = Principal::service("billing");
            }
            let built = fixture.admit(request).unwrap();
            assert_eq!((case.read)(&built), "x", "{} from {source}", case.fact);
        }
    }
}

#[test]
fn r3_any_two_sources_must_agree() {
    for case in cases() {
        let fixture = case.fixture();
        for (first, (first_name, say_first)) in case.sources.iter().enumerate() {
            for (second_name, say_second) in &case.sources[first + 1..] {
                let pair = |one: &str, other: &str| {
                    let mut request = case.request();
                    say_first(&mut request, one);
                    say_second(&mut request, other);
                    if case.fact == "owner" && request.principal.subject.is_none() {
                        request.principal = Principal::service("billing");
                    }
                    fixture.admit(request)
                };
                let what = format!("{}: {first_name} and {second_name}", case.fact);
                assert_eq!(
                    (case.read)(&pair("same", "same").unwrap()),
                    "same",
                    "{what}"
                );
                let error = pair("secret-1", "secret-2").unwrap_err();
                let CommandError::IdentityConflict { fact, sources } = &error else {
                    panic!("{what}: {error}");
                };
                assert_eq!(*fact, case.fact, "{what}");
                assert_eq!(*sources, format!("{first_name}, {second_name}"), "{what}");
                assert!(!error.to_string().contains("secret"), "{error}");
                // Bytes are compared, not what they may mean.
                assert!(pair("Same", "same").is_err(), "{what}");
            }
        }
    }
}

#[test]
fn r3_an_empty_source_is_refused_even_beside_a_good_one() {
    for case in cases() {
        let fixture = case.fixture();
        for (source, say) in &case.sources {
            for (_, other) in &case.sources {
                let mut request = case.request();
                other(&mut request, "x");
                say(&mut request, "");
                let error = fixture.error(request);
                let empty = CommandError::IdentityInvalid {
                    fact: case.fact.into(),
                    fault: IdFault::Empty,
                };
                // What a personal aggregate lacks first is its owner.
                let owner = CommandError::IdentityInvalid {
                    fact: "owner".into(),
                    fault: IdFault::Empty,
                };
                assert!(
                    error == empty || error == owner,
                    "{} from {source}: {error}",
                    case.fact
                );
            }
        }
    }
}

#[test]
fn r3_an_id_has_1_to_128_characters_without_control_slash_or_outer_blank() {
    let long = "x".repeat(129);
    let faults = [
        (&*long, IdFault::TooLong),
        ("a/b", IdFault::Character),
        ("a\u{7}", IdFault::Character),
        (" a", IdFault::Blank),
        ("a\u{a0}", IdFault::Blank),
    ];
    for case in cases() {
        let fixture = case.fixture();
        for (text, fault) in &faults {
            let mut request = case.request();
            let (_, say) = case.sources.last().unwrap();
            say(&mut request, text);
            let error = fixture.error(request);
            let CommandError::IdentityInvalid { fault: found, .. } = error else {
                panic!("{}: {error}", case.fact);
            };
            assert_eq!(found, *fault, "{}: {text:?}", case.fact);
        }
    }
}

#[test]
fn r3_nothing_said_means_the_default_tenant_and_no_owner_and_no_space() {
    let fixture = Fixture::new(AccessMode::Open);
    let built = fixture
        .admit(Submission::json("ownerless", "ping", ""))
        .unwrap();
    let Identity { key, owner, space } = built.identity;
    assert_eq!(
        (key.tenant.as_str(), owner.as_str(), space.as_str()),
        ("(0)", "", "")
    );
}

#[test]
fn r3_a_static_tenant_is_the_only_one_whatever_the_tokens_is() {
    let fixture = Fixture::new(AccessMode::Jwt);
    let claiming = Principal {
        tenant: Some("acme".into()),
        ..user("ann")
    };
    let ping = || Submission::json("fixed", "ping", "").principal(claiming.clone());
    for request in [ping(), ping().tenant("(0)")] {
        let built = fixture.admit(request).unwrap();
        assert_eq!(built.identity.key.tenant.as_str(), "(0)");
    }
    let mut by_path = ping();
    by_path.facts.tenant.push((Source::Path, "acme".into()));
    for request in [ping().tenant("acme"), by_path] {
        let error = fixture.error(request);
        assert_eq!(error.code(), "wow.command.identity-conflict");
        assert!(error.to_string().contains("static tenant"), "{error}");
    }
}

#[test]
fn r3_what_nothing_names_is_the_causes() {
    let fixture = Fixture::new(AccessMode::Open);
    let cause = fixture
        .admit(
            Submission::json("owned", "ping", "")
                .tenant("acme")
                .owner("bob")
                .space("shop"),
        )
        .unwrap();
    let following = |aggregate| Submission::json(aggregate, "ping", "").follows(&cause);
    let admitted = |request: Submission| {
        let Identity { key, owner, space } = fixture.admit(request).unwrap().identity;
        format!("{} {} {}", key.tenant, owner, space)
    };
    assert_eq!(admitted(following("owned")), "acme bob shop");
    assert_eq!(admitted(following("ownerless")), "acme  shop");
    assert_eq!(admitted(following("fixed")), "(0)  shop");
    let named = following("owned").tenant("t").owner("o").space("s");
    assert_eq!(admitted(named), "t o s");
    // The owner would be the aggregate's name here, so it has to be said.
    assert_eq!(
        admitted(following("personal").aggregate_id("cy")),
        "acme cy shop"
    );
    let unnamed = fixture.error(following("personal"));
    assert_eq!(unnamed.code(), "wow.command.identity-invalid");
}

#[test]
fn r3_the_causes_owner_stands_in_before_the_tokens_subject_may() {
    let fixture = Fixture::new(AccessMode::Jwt);
    let shipper = with_role("sue", "shipper");
    let ship = |owner: &str| {
        Submission::json("owned", "ship", "")
            .aggregate_id("o-1")
            .owner(owner)
            .principal(shipper.clone())
    };
    let cause = fixture.admit(ship("bob")).unwrap();
    let nested = Submission::json("owned", "ship", "").aggregate_id("o-2");
    let built = fixture.admit(nested.follows(&cause)).unwrap();
    assert_eq!(built.identity.owner.as_str(), "bob");
    // A rule that binds the caller to its own still does.
    let nested = Submission::json("owned", "ping", "").aggregate_id("o-2");
    let built = fixture.admit(nested.follows(&cause)).unwrap();
    assert_eq!(built.identity.owner.as_str(), "sue");
}

#[test]
fn r3_a_services_own_claims_say_nothing_of_whom_it_acts_for() {
    let fixture = Fixture::new(AccessMode::Jwt);
    let service = Principal {
        subject: Some("billing".into()),
        tenant: Some("home".into()),
        space: Some("office".into()),
        roles: vec![SERVICE_ROLE.into()],
    };
    let ping = || {
        Submission::json("owned", "ping", "")
            .owner("bob")
            .principal(service.clone())
    };
    let built = fixture.admit(ping().tenant("acme").space("shop")).unwrap();
    let Identity { key, owner, space } = built.identity;
    assert_eq!(
        (key.tenant.as_str(), owner.as_str(), space.as_str()),
        ("acme", "bob", "shop")
    );
    let built = fixture.admit(ping()).unwrap();
    assert_eq!(built.identity.key.tenant.as_str(), "(0)");
    let conflict = ping().tenant("acme").tenant("other");
    assert_eq!(
        fixture.error(conflict).code(),
        "wow.command.identity-conflict"
    );
}

#[test]
fn r3_the_tokens_subject_is_the_owner_where_the_type_has_owners() {
    let jwt = Fixture::new(AccessMode::Jwt);
    let open = Fixture::new(AccessMode::Open);
    let owner_of = |fixture: &Fixture, aggregate, command, named: Option<&str>, caller| {
        let mut request = Submission::json(aggregate, command, "").principal(caller);
        if aggregate != "personal" {
            request = request.aggregate_id("1");
        }
        if let Some(owner) = named {
            request.facts.owner.push((Source::Header, owner.into()));
        }
        let outcome = fixture
            .admit(request)
            .map(|built| built.identity.owner.to_string());
        outcome.map_err(|error| error.code().into_owned())
    };
    let conflict = Err("wow.command.identity-conflict".to_owned());
    let invalid = Err("wow.command.identity-invalid".to_owned());
    let ann = || user("ann");
    let shipper = || with_role("ann", "shipper");
    let ok = |owner: &str| Ok(owner.to_owned());
    for aggregate in ["owned", "personal"] {
        assert_eq!(owner_of(&jwt, aggregate, "ping", None, ann()), ok("ann"));
        assert_eq!(
            owner_of(&jwt, aggregate, "ping", Some("ann"), ann()),
            ok("ann")
        );
        assert_eq!(
            owner_of(&jwt, aggregate, "ping", Some("bob"), ann()),
            conflict
        );
        assert_eq!(
            owner_of(&jwt, aggregate, "seal", Some("bob"), ann()),
            conflict
        );
        assert_eq!(
            owner_of(&jwt, aggregate, "look", Some("bob"), ann()),
            conflict
        );
        // A role says that others than the owner may act: for the owner that they name.
        assert_eq!(
            owner_of(&jwt, aggregate, "ship", Some("bob"), shipper()),
            ok("bob")
        );
        assert_eq!(
            owner_of(&jwt, aggregate, "ship", None, shipper()),
            ok("ann")
        );
        // Nobody's subject stands in for an owner here.
        assert_eq!(owner_of(&open, aggregate, "ping", None, ann()), invalid);
        assert_eq!(
            owner_of(&jwt, aggregate, "ping", None, Principal::service("s")),
            invalid
        );
        assert_eq!(
            owner_of(&jwt, aggregate, "look", None, Principal::anonymous()),
            invalid
        );
    }
    assert_eq!(owner_of(&jwt, "ownerless", "ping", None, ann()), ok(""));
    assert_eq!(
        owner_of(&jwt, "ownerless", "ping", Some("bob"), ann()),
        ok("bob")
    );
}

#[test]
fn r3_a_personal_aggregates_owner_and_id_are_one() {
    let open = Fixture::new(AccessMode::Open);
    let by_id = open
        .admit(Submission::json("personal", "ping", "").aggregate_id("bob"))
        .unwrap();
    assert_eq!(by_id.identity.owner.as_str(), "bob");
    let by_owner = open
        .admit(Submission::json("personal", "ping", "").owner("bob"))
        .unwrap();
    assert_eq!(by_owner.identity.key.id.as_str(), "bob");
    let jwt = Fixture::new(AccessMode::Jwt);
    let others = Submission::json("personal", "ping", "").aggregate_id("bob");
    let error = jwt.error(others.principal(user("ann")));
    assert_eq!(error.code(), "wow.command.identity-conflict");
    let role = with_role("ann", "shipper");
    let ship = Submission::json("personal", "ship", "")
        .aggregate_id("bob")
        .principal(role);
    assert_eq!(jwt.admit(ship).unwrap().identity.owner.as_str(), "bob");
}
