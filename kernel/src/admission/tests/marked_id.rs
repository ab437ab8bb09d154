//! R3: the aggregate id that the body names.

use super::*;
use crate::id::IdFault;

#[test]
fn r3_an_update_needs_an_id() {
    let fixture = Fixture::new(AccessMode::Open);
    let missing = CommandError::IdentityInvalid {
        fact: "aggregate id".into(),
        fault: IdFault::Empty,
    };
    assert_eq!(
        fixture.error(Submission::json("ownerless", "seal", "")),
        missing
    );
    assert_eq!(
        fixture.error(Submission::json("ownerless", "change", "{}")),
        missing
    );
    assert_eq!(
        fixture.error(Submission::json("ownerless", "change", r#"{"id":null}"#)),
        missing
    );
}

#[test]
fn r3_an_unreadable_body_names_no_id_and_is_reported_after_access() {
    let large = format!(r#"{{"id":"{}"}}"#, "x".repeat(70_000));
    let deep = format!(r#"{{"id":"1","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let doubled = r#"{"id":"1","id":"2"}"#;
    for body in [
        large.as_str(),
        deep.as_str(),
        doubled,
        r#"{"id":"1""#,
        r#"{"id":{}}"#,
        "\0",
    ] {
        let change = || Submission::json("ownerless", "change", body.to_owned());
        let jwt = Fixture::new(AccessMode::Jwt);
        assert_eq!(jwt.error(change()), CommandError::Unauthenticated);
        let code = jwt
            .error(change().principal(user("ann")))
            .code()
            .into_owned();
        assert!(code.starts_with("wow.command.body-"), "{code}");
        // An id from elsewhere doesn't hide the fault either.
        let code = jwt.error(change().aggregate_id("1").principal(user("ann")));
        assert!(code.code().starts_with("wow.command.body-"), "{code}");
    }
}

#[test]
fn r3_the_marked_field_means_after_decoding_what_it_meant_before() {
    let fixture = Fixture::new(AccessMode::Open);
    let change = |id: &str| {
        let body = serde_json::json!({ "id": id }).to_string();
        fixture.admit(Submission::json("ownerless", "change", body))
    };
    let usual = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    assert_eq!(change(usual).unwrap().identity.key.id.as_str(), usual);
    // Another spelling of the same UUID would be a second aggregate under one name.
    for odd in [usual.to_uppercase(), usual.replace('-', "")] {
        assert_eq!(
            change(&odd).unwrap_err().code(),
            "wow.command.identity-conflict"
        );
    }
    // Escapes are read before ids are compared.
    let escaped = Submission::json("ownerless", "open", r#"{"id":"\u0061b"}"#);
    let built = fixture.admit(escaped.aggregate_id("ab")).unwrap();
    assert_eq!(built.identity.key.id.as_str(), "ab");
    // An array would be read as a struct by position, past the name of the field.
    let by_position = Submission::json("ownerless", "change", format!(r#"["{usual}"]"#));
    let error = fixture.error(by_position.aggregate_id("other"));
    assert_eq!(error.code(), "wow.command.body-invalid");
}

#[test]
fn r3_a_typed_commands_marked_field_is_a_source() {
    let fixture = Fixture::new(AccessMode::Open);
    let open = |id: &str| {
        let mut request = Submission::json("ownerless", "open", "");
        request.body = Body::Typed(Arc::new(Open {
            id: Some(id.into()),
            ..Open::default()
        }));
        request
    };
    assert_eq!(
        fixture.admit(open("a")).unwrap().identity.key.id.as_str(),
        "a"
    );
    assert_eq!(
        fixture
            .admit(open("a").aggregate_id("a"))
            .unwrap()
            .identity
            .key
            .id
            .as_str(),
        "a"
    );
    let error = fixture.error(open("a").aggregate_id("b"));
    assert_eq!(error.code(), "wow.command.identity-conflict");
    assert_eq!(
        fixture.error(open("")).code(),
        "wow.command.identity-invalid"
    );
}
