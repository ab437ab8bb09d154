//! The order of the steps, types, access and transformers.

use super::*;

#[test]
fn r1_the_first_step_that_fails_answers_and_later_ones_do_not_run() {
    let fixture = Fixture::with(AccessMode::Jwt, Lookup::default(), |registry| {
        registry.transform::<Open>(|command, _| match command.name.as_str() {
            "unwanted" => Err(Rejection::new("test.unwanted", "not this one")),
            _ => Ok(command),
        })
    });
    // Everything about this is wrong; each line mends the first fault, and uncovers the next.
    let body = |text: &str| Body::Json(text.to_owned().into());
    let mut request = Submission::json("nowhere", "open", "[")
        .tenant("")
        .request_id("wow:mine");
    assert_eq!(
        fixture.error(request.clone()).code(),
        "wow.command.type-unknown"
    );

    request.target = Submission::json("ownerless", "open", "").target;
    assert_eq!(
        fixture.error(request.clone()).code(),
        "wow.command.identity-invalid"
    );

    request.facts.tenant.clear();
    assert_eq!(
        fixture.error(request.clone()).code(),
        "wow.access.unauthenticated"
    );

    request.principal = user("ann");
    assert_eq!(
        fixture.error(request.clone()).code(),
        "wow.command.body-invalid"
    );

    request.body = body(r#"{"amount":-1,"name":"unwanted"}"#);
    assert_eq!(fixture.error(request.clone()).code(), "wow.command.invalid");

    request.body = body(r#"{"amount":1,"name":"unwanted"}"#);
    assert_eq!(fixture.error(request.clone()).code(), "test.unwanted");

    request.body = body(r#"{"amount":1}"#);
    assert_eq!(
        fixture.error(request.clone()).code(),
        "wow.command.request-id-invalid"
    );
    assert_eq!(fixture.look_ups(), 0);

    request = request.request_id("mine");
    assert!(fixture.admit(request).is_ok());
    assert_eq!(fixture.look_ups(), 1);
}

#[test]
fn r2_an_unknown_type_is_told_so() {
    let fixture = Fixture::new(AccessMode::Open);
    let named = |context: Option<&str>, aggregate: Option<&str>, command: &str| {
        let target = crate::submission::Target::Named {
            context: context.map(str::to_owned),
            aggregate: aggregate.map(str::to_owned),
            command: command.to_owned(),
        };
        fixture.admit(Submission::named(target, "{}"))
    };
    assert!(named(Some("test"), Some("ownerless"), "open").is_ok());
    for (context, aggregate, command) in [
        (None, Some("ownerless"), "opened"),
        (None, Some("Ownerless"), "open"),
        (Some("other"), Some("ownerless"), "open"),
        // Four types have it.
        (None, None, "open"),
        (None, Some(""), "open"),
    ] {
        let error = named(context, aggregate, command).unwrap_err();
        assert!(matches!(error, CommandError::TypeUnknown { .. }), "{error}");
    }
    let stranger = Submission::typed(DeclaredElsewhere {});
    assert!(matches!(
        fixture.error(stranger),
        CommandError::TypeUnknown { .. }
    ));
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct DeclaredElsewhere {}

impl Command for DeclaredElsewhere {
    fn spec() -> CommandSpec {
        CommandSpec::new("elsewhere")
    }
}

#[test]
fn r2_a_payload_of_another_type_than_its_target_is_refused() {
    let fixture = Fixture::new(AccessMode::Open);
    let mut request = Submission::json("ownerless", "open", "{}");
    request.body = Body::Typed(Arc::new(Ping {}));
    assert_eq!(fixture.error(request), CommandError::Internal);
}

#[test]
fn r4_each_rule_lets_whom_it_names() {
    let known = || user("ann");
    let shipper = || with_role("ann", "shipper");
    let service = || Principal::service("billing");
    let nobody = Principal::anonymous;
    let (unauthenticated, denied) = (Err("wow.access.unauthenticated"), Err("wow.access.denied"));
    for (command, id, caller, in_jwt, in_open) in [
        ("explode-not", "1", nobody(), unauthenticated, Ok(())),
        ("explode-not", "1", known(), Ok(()), Ok(())),
        ("look", "1", nobody(), Ok(()), Ok(())),
        ("ship", "1", nobody(), unauthenticated, unauthenticated),
        ("ship", "1", known(), denied, denied),
        ("ship", "1", shipper(), Ok(()), Ok(())),
        ("ship", "1", service(), Ok(()), Ok(())),
        ("inspect", "1", nobody(), unauthenticated, unauthenticated),
        ("inspect", "1", known(), denied, denied),
        ("inspect", "open-door", known(), Ok(()), Ok(())),
        ("seal", "1", nobody(), unauthenticated, Ok(())),
        ("seal", "1", known(), denied, Ok(())),
        ("seal", "1", service(), Ok(()), Ok(())),
    ] {
        for (mode, expected) in [(AccessMode::Jwt, in_jwt), (AccessMode::Open, in_open)] {
            let fixture = Fixture::new(mode);
            let command = if command == "explode-not" {
                "ping"
            } else {
                command
            };
            let request = Submission::json("ownerless", command, "").aggregate_id(id);
            let outcome = fixture.admit(request.principal(caller.clone()));
            let outcome = outcome
                .map(|_| ())
                .map_err(|error| error.code().into_owned());
            let expected = expected.map_err(str::to_owned);
            assert_eq!(
                outcome, expected,
                "{command} {id} in {mode:?} as {caller:?}"
            );
        }
    }
}

#[test]
fn r4_only_the_owner_of_the_named_aggregate_passes_the_owner_rule() {
    let fixture = Fixture::new(AccessMode::Jwt);
    let seal = || Submission::json("owned", "seal", "").aggregate_id("1");
    assert!(
        fixture
            .admit(seal().owner("ann").principal(user("ann")))
            .is_ok()
    );
    assert_eq!(
        fixture.error(seal().owner("ann")).code(),
        "wow.access.unauthenticated",
        "naming the owner proves nothing"
    );
    let other = fixture.error(seal().owner("ann").principal(user("bob")));
    assert_eq!(other.code(), "wow.command.identity-conflict");
    // Nobody is the owner of what has none, whatever the request says.
    let mut unowned = Submission::json("ownerless", "transfer_space", r#"{"toSpaceId":"s"}"#);
    unowned = unowned.aggregate_id("1").owner("ann");
    let denied = fixture.error(unowned.clone().principal(user("ann")));
    assert_eq!(denied, CommandError::Denied);
    assert!(
        fixture
            .admit(unowned.principal(Principal::service("s")))
            .is_ok()
    );
}

#[test]
fn r4_a_denied_caller_is_answered_before_anything_stored_is_asked() {
    let lookup = Lookup::holding([opened("r1", "first", "ann", "")]);
    let fixture = Fixture::with(AccessMode::Jwt, lookup, |registry| registry);
    let error = fixture.error(Submission::json("ownerless", "open", "{}").request_id("r1"));
    assert_eq!(
        (error, fixture.look_ups()),
        (CommandError::Unauthenticated, 0)
    );
}

#[test]
fn r6_transformers_run_in_order_and_may_rewrite_and_reject() {
    let fixture = Fixture::with(AccessMode::Open, Lookup::default(), |registry| {
        registry
            .transform::<Open>(|mut command, context| {
                command.name.push_str(context.identity.key.tenant.as_str());
                Ok(command)
            })
            .transform::<Open>(|mut command, _| {
                command.name.push_str(" second");
                Ok(command)
            })
            .transform::<Open>(|command, _| match command.amount {
                13 => Err(Rejection::new("test.unlucky", "not thirteen")),
                _ => Ok(command),
            })
    });
    let built = fixture
        .admit(Submission::json("ownerless", "open", "{}").tenant("acme"))
        .unwrap();
    let open: &Open = built.payload.downcast_ref().unwrap();
    assert_eq!(open.name, "acme second");
    let unlucky = Open {
        amount: 13,
        ..Open::default()
    };
    assert_eq!(
        fixture.error(Submission::typed_open(unlucky)).code(),
        "test.unlucky"
    );
}

impl Submission {
    /// [`Open`] has one Rust type and four aggregates: the name decides.
    fn typed_open(command: Open) -> Self {
        let mut request = Self::json("ownerless", "open", "");
        request.body = Body::Typed(Arc::new(command));
        request
    }
}

#[test]
fn r6_a_transformer_that_changes_the_identity_is_refused() {
    let fixture = Fixture::with(AccessMode::Open, Lookup::default(), |registry| {
        registry.transform::<Open>(|mut command, _| {
            command.id = Some("stolen".into());
            Ok(command)
        })
    });
    let named = Open {
        id: Some("mine".into()),
        ..Open::default()
    };
    let same = Open {
        id: Some("stolen".into()),
        ..Open::default()
    };
    for (command, is_refused) in [(named, true), (Open::default(), true), (same, false)] {
        let outcome = fixture.admit(Submission::typed_open(command));
        assert_eq!(
            outcome.err(),
            is_refused.then_some(CommandError::TransformerIdentity)
        );
    }
}

#[test]
fn r32_users_code_that_panics_in_admission_fails_its_command_only() {
    let fixture = Fixture::new(AccessMode::Open);
    let explode = Submission::json("ownerless", "explode", "").aggregate_id("1");
    assert_eq!(fixture.error(explode), CommandError::Panicked);
    assert!(
        fixture
            .admit(Submission::json("ownerless", "ping", ""))
            .is_ok()
    );
}
