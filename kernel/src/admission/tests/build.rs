//! The built command, ids made by admission, retried creations.

use super::*;
use crate::command::CHAIN_DEPTH_MAX;
use crate::id::IdFault;
use crate::submission::SubmittedRequestId;
use crate::wait::{Stage, WaitPlan};

fn open() -> Submission {
    Submission::json("ownerless", "open", r#"{"amount":7}"#)
}

#[test]
fn r7_the_built_command_carries_all_that_came_and_was_found() {
    let fixture = Fixture::new(AccessMode::Open);
    let chain: Vec<_> = [opened("r", "a", "", "").key].into();
    let mut request = open()
        .tenant("acme")
        .owner("bob")
        .space("shop")
        .aggregate_id("1")
        .request_id("r1")
        .expected_version(3)
        .wait(Stage::Processed)
        .timeout(Duration::from_secs(5))
        .header("traceparent", "00-1-2-01")
        .principal(user("ann"));
    request.chain = chain.clone().into();
    let built = fixture.admit(request).unwrap();
    assert_eq!(built.identity.key.to_string(), "acme/ownerless/1");
    assert_eq!(
        (built.identity.owner.as_str(), built.identity.space.as_str()),
        ("bob", "shop")
    );
    assert_eq!(
        (built.aggregate.spec.name, built.definition.spec.name),
        ("ownerless", "open")
    );
    assert_eq!(built.payload.downcast_ref::<Open>().unwrap().amount, 7);
    assert_eq!(
        (built.request_id.as_str(), built.request_id_made),
        ("r1", false)
    );
    assert!(!built.aggregate_id_made);
    assert_eq!(built.expected_version, Some(3));
    let wait = WaitPlan {
        timeout: Duration::from_secs(5),
        ..WaitPlan::until(Stage::Processed)
    };
    assert_eq!(built.wait, wait);
    assert_eq!(built.deadline, Duration::from_secs(105));
    assert_eq!(*built.chain, *chain);
    assert_eq!(built.origin.as_str(), "node-1");
    assert_eq!(built.headers["traceparent"], "00-1-2-01");
    assert_eq!(built.principal, user("ann"));
}

#[test]
fn r7_the_default_plan_waits_for_the_snapshot() {
    let built = Fixture::new(AccessMode::Open).admit(open()).unwrap();
    assert_eq!(
        (built.wait.stage, built.wait.timeout),
        (Stage::Snapshot, Duration::from_secs(30))
    );
}

#[test]
fn r7_a_wait_is_bounded_both_ways() {
    let fixture = Fixture::new(AccessMode::Open);
    for (timeout, is_fine) in [
        (Duration::ZERO, false),
        (Duration::from_micros(999), false),
        (Duration::from_millis(1), true),
        (Duration::from_secs(300), true),
        (Duration::from_millis(300_001), false),
        (Duration::MAX, false),
    ] {
        let outcome = fixture.admit(open().timeout(timeout));
        assert_eq!(outcome.is_ok(), is_fine, "{timeout:?}");
        if let Err(error) = outcome {
            assert_eq!(error.code(), "wow.command.parameter-invalid");
        }
    }
}

#[test]
fn r7_kept_headers_are_bounded_in_number_and_size() {
    let fixture = Fixture::new(AccessMode::Open);
    let with_headers = |count: usize, bytes: usize| {
        let request = open().header("traceparent", "1").header("tracestate", "2");
        (0..count).fold(request, |request, number| {
            request.header(format!("h{number}"), "x".repeat(bytes))
        })
    };
    assert!(
        fixture
            .admit(with_headers(HEADERS_MAX, HEADER_BYTES_MAX))
            .is_ok()
    );
    for request in [
        with_headers(HEADERS_MAX + 1, 1),
        with_headers(1, HEADER_BYTES_MAX + 1),
        open().header("x".repeat(HEADER_BYTES_MAX + 1), ""),
    ] {
        assert_eq!(
            fixture.error(request).code(),
            "wow.command.parameter-invalid"
        );
    }
}

#[test]
fn r8_a_caller_cant_set_headers_that_are_ours() {
    let fixture = Fixture::new(AccessMode::Open);
    for name in [crate::saga::DEPTH_HEADER, "WOW-Saga-Depth", "wow-"] {
        let request = open().header(name, "31");
        let error = fixture.error(request.clone().request_id("r1"));
        assert_eq!(error.code(), "wow.command.parameter-invalid");
        let mut ours = request;
        ours.request_id = Some(SubmittedRequestId::System(RequestId::trusted("wow:s:x")));
        assert!(fixture.admit(ours).is_ok());
    }
    assert!(
        fixture
            .admit(open().header("wow", "1").header("é-wow-", "1"))
            .is_ok()
    );
}

#[test]
fn r8_a_request_without_an_id_gets_one_that_is_marked() {
    let fixture = Fixture::new(AccessMode::Open);
    let first = fixture.admit(open()).unwrap();
    let second = fixture.admit(open()).unwrap();
    assert!(first.request_id_made && second.request_id_made);
    assert_ne!(first.request_id, second.request_id);
    assert_ne!(first.command_id, second.command_id);
    assert!(Uuid::try_parse(first.request_id.as_str()).is_ok());
    assert_eq!(fixture.look_ups(), 0, "it can't have been committed before");
}

#[test]
fn r8_a_caller_cant_use_our_request_ids_nor_invisible_ones() {
    let fixture = Fixture::new(AccessMode::Open);
    let long = "x".repeat(129);
    for (text, fault) in [
        ("wow:s:example:transfer:1:2:0", IdFault::Reserved),
        ("", IdFault::Empty),
        ("a b", IdFault::Invisible),
        ("é", IdFault::Invisible),
        (&*long, IdFault::TooLong),
    ] {
        let error = fixture.error(open().request_id(text));
        assert_eq!(error, CommandError::RequestIdInvalid { fault }, "{text:?}");
    }
    let mut ours = open();
    ours.request_id = Some(SubmittedRequestId::System(RequestId::trusted(
        "wow:s:x:y:1:2:0",
    )));
    let built = fixture.admit(ours).unwrap();
    assert_eq!(
        (built.request_id.as_str(), built.request_id_made),
        ("wow:s:x:y:1:2:0", false)
    );
}

#[test]
fn r12_a_creation_without_an_id_gets_a_new_one() {
    let fixture = Fixture::new(AccessMode::Open);
    let first = fixture.admit(open()).unwrap();
    let second = fixture.admit(open()).unwrap();
    assert!(first.aggregate_id_made && second.aggregate_id_made);
    assert_ne!(first.identity.key.id, second.identity.key.id);
    let upsert = fixture
        .admit(Submission::json("ownerless", "ping", ""))
        .unwrap();
    assert!(upsert.aggregate_id_made && !upsert.identity.key.id.is_empty());
}

#[test]
fn r12_a_retried_creation_reuses_its_id() {
    let lookup = Lookup::holding([opened("r1", "first", "ann", "bob")]);
    let fixture = Fixture::with(AccessMode::Jwt, lookup, |registry| registry);
    let retry = open().request_id("r1").owner("bob").principal(user("ann"));
    let built = fixture.admit(retry.clone()).unwrap();
    assert_eq!(built.identity.key.id.as_str(), "first");
    assert!(!built.aggregate_id_made, "it may exist");
    let mut by_system = retry;
    by_system.request_id = Some(SubmittedRequestId::System(RequestId::trusted("r1")));
    assert_eq!(
        fixture.admit(by_system).unwrap().identity.key.id.as_str(),
        "first"
    );
}

#[test]
fn r12_a_creation_that_names_its_id_needs_no_look_up() {
    let lookup = Lookup::holding([opened("r1", "first", "ann", "")]);
    let fixture = Fixture::with(AccessMode::Jwt, lookup, |registry| registry);
    let named = open()
        .request_id("r1")
        .aggregate_id("mine")
        .principal(user("ann"));
    let built = fixture.admit(named).unwrap();
    assert_eq!(
        (built.identity.key.id.as_str(), fixture.look_ups()),
        ("mine", 0)
    );
}

#[test]
fn r12_a_creation_is_not_guessed_when_storage_is_down() {
    let fixture = Fixture::with(AccessMode::Open, Lookup::down(), |registry| registry);
    assert_eq!(
        fixture.error(open().request_id("r1")),
        CommandError::StorageUnavailable
    );
    assert!(
        fixture.admit(open()).is_ok(),
        "what needs no storage goes on (R75)"
    );
}

#[test]
fn r13_anothers_creation_lends_its_id_to_nobody() {
    let of_another_type = |mut commit: Commit| {
        commit.command_type = Arc::from("ping");
        commit
    };
    for (stored, what) in [
        (opened("r1", "first", "bob", ""), "another subject"),
        (opened("r1", "first", "ann", "bob"), "another owner"),
        (opened("r1", "first", "", ""), "an anonymous caller"),
        (
            of_another_type(opened("r1", "first", "ann", "")),
            "another command type",
        ),
    ] {
        let fixture = Fixture::with(AccessMode::Jwt, Lookup::holding([stored]), |registry| {
            registry
        });
        let built = fixture
            .admit(open().request_id("r1").principal(user("ann")))
            .unwrap();
        assert_ne!(built.identity.key.id.as_str(), "first", "{what}");
        // The look-up before deciding refuses it: the request id was not made here.
        assert!(!built.request_id_made && built.aggregate_id_made, "{what}");
    }
}

#[test]
fn r13_in_jwt_mode_an_anonymous_creation_is_never_taken_for_a_retry() {
    let stored = || Lookup::holding([opened("r1", "first", "", "")]);
    let open_to_all = |registry: RegistryBuilder| registry.register::<Guestbook>();
    let sign = || Submission::json("guestbook", "sign", "{}").request_id("r1");
    let mut lookup = stored();
    let mut signed = opened("r1", "first", "", "");
    signed.key.aggregate_type = AggregateType::trusted("guestbook");
    signed.command_type = Arc::from("sign");
    let key = (
        signed.key.tenant.clone(),
        signed.key.aggregate_type.clone(),
        signed.request_id.clone(),
    );
    lookup.commits.insert(key, signed);
    let commits = lookup.commits.clone();
    let jwt = Fixture::with(AccessMode::Jwt, lookup, open_to_all);
    assert_ne!(jwt.admit(sign()).unwrap().identity.key.id.as_str(), "first");
    let open_mode = Fixture::with(
        AccessMode::Open,
        Lookup {
            commits,
            ..Lookup::default()
        },
        open_to_all,
    );
    assert_eq!(
        open_mode.admit(sign()).unwrap().identity.key.id.as_str(),
        "first"
    );
}

#[derive(Default, Clone, Serialize, Deserialize, JsonSchema)]
struct Guestbook {}

impl Evolve for Guestbook {
    type Event = Nothing;

    fn evolve(&mut self, event: &Nothing) {
        match *event {}
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Sign {}

impl Command for Sign {
    fn spec() -> CommandSpec {
        let spec = CommandSpec::new("sign");
        CommandSpec {
            creation: CreationRule::Creates,
            access: AccessRule::Public,
            ..spec
        }
    }
}

impl Decide<Sign> for Guestbook {
    async fn decide(
        &self,
        _command: &Sign,
        _context: &DecideContext,
    ) -> Result<Decision<Nothing>, Rejection> {
        Ok(Decision::none())
    }
}

impl Aggregate for Guestbook {
    fn spec() -> AggregateSpec {
        AggregateSpec::new("guestbook")
    }

    fn commands(set: &mut CommandSet<Self>) {
        set.add::<Sign>();
    }
}

#[test]
fn r30_a_command_for_an_aggregate_that_waits_for_it_names_the_cycle() {
    let fixture = Fixture::new(AccessMode::Open);
    let key = |id: &str| opened("r", id, "", "").key;
    let mut request = Submission::json("ownerless", "seal", "").aggregate_id("b");
    request.chain = vec![key("a"), key("b"), key("c")].into();
    let CommandError::Reentrant { chain } = fixture.error(request.clone()) else {
        panic!("a cycle should be refused")
    };
    assert_eq!(chain, "(0)/ownerless/b → (0)/ownerless/c → (0)/ownerless/b");
    let elsewhere = request.tenant("acme");
    assert!(
        fixture.admit(elsewhere).is_ok(),
        "another tenant's aggregate is another one"
    );
}

#[test]
fn r30_a_chain_of_commands_has_a_bound() {
    let fixture = Fixture::new(AccessMode::Open);
    let key = |number: usize| opened("r", &number.to_string(), "", "").key;
    for (depth, is_fine) in [(CHAIN_DEPTH_MAX, true), (CHAIN_DEPTH_MAX + 1, false)] {
        let mut request = open();
        request.chain = (0..depth).map(key).collect();
        let outcome = fixture.admit(request).err();
        let expected = CommandError::ChainTooDeep {
            max: CHAIN_DEPTH_MAX,
        };
        assert_eq!(outcome, (!is_fine).then_some(expected));
    }
}
