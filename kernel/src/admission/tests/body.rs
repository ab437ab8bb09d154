//! R5: what is a body, and what is wrong with those that are none.

use proptest::prelude::*;

use super::*;
use crate::submission::VariableValue;

fn refusal(fixture: &Fixture, command: &str, body: impl Into<bytes::Bytes>) -> (String, String) {
    let request = Submission::json("ownerless", command, body).aggregate_id("1");
    match fixture.error(request) {
        CommandError::BodyInvalid { path, reason } => (path, reason),
        other => panic!("{other}"),
    }
}

/// Bodies that are none: command, body, the path that is told, and part of the reason.
const BAD_BODIES: &[(&str, &str, &str, &str)] = &[
    ("keep", "", ".", "a body is needed"),
    ("keep", " \n", ".", "a body is needed"),
    ("keep", "{", ".", "ends too early"),
    (
        "keep",
        r#"{"items":[{"price":1},{"pri"#,
        "items[1]",
        "ends too early",
    ),
    (
        "keep",
        r#"{"items":[{"price":1},{"price":"#,
        "items[1].price",
        "ends too early",
    ),
    (
        "keep",
        r#"{"items":[{"price":1},{"price":x}]}"#,
        "items[1].price",
        "expected a value",
    ),
    (
        "keep",
        r#"{"items":[{"price":NaN}]}"#,
        "items[0].price",
        "NaN",
    ),
    (
        "keep",
        r#"{"items":[{"price":-Infinity}]}"#,
        "items[0].price",
        "no JSON",
    ),
    (
        "keep",
        r#"{"items":[{"price":01}]}"#,
        "items[0].price",
        "malformed number",
    ),
    (
        "keep",
        r#"{"items":[{"price":1.}]}"#,
        "items[0].price",
        "malformed number",
    ),
    (
        "keep",
        r#"{"items":[{"price":-1}]}"#,
        "items[0].price",
        "-1",
    ),
    (
        "keep",
        r#"{"items":[{"price":1.5}]}"#,
        "items[0].price",
        "1.5",
    ),
    (
        "keep",
        r#"{"items":[{"price":"1"}]}"#,
        "items[0].price",
        "string",
    ),
    (
        "keep",
        r#"{"items":[{"price":18446744073709551616}]}"#,
        "items[0].price",
        "expected u64",
    ),
    (
        "keep",
        r#"{"items":[{"price":1e999}]}"#,
        "items[0].price",
        "out of range",
    ),
    (
        "keep",
        r#"{"items":[{}]}"#,
        "items[0]",
        "missing field `price`",
    ),
    (
        "keep",
        r#"{"items":[{"price":1,}]}"#,
        "items[0].price",
        "a key in quotes",
    ),
    ("keep", r#"{"items":[1,]}"#, "items[1]", "expected a value"),
    ("keep", r#"{"items":[]} {}"#, ".", "more follows"),
    (
        "keep",
        r#"{"items":[],"x":{"a":1,"b":2,"a":3}}"#,
        "x.a",
        "comes twice",
    ),
    (
        "keep",
        r#"{"items":[],"x":[0,{"\u0061":1,"a":3}]}"#,
        "x[1].a",
        "comes twice",
    ),
    ("keep", r#"{"items":[],"items":[]}"#, "items", "comes twice"),
    ("keep", r#"{"items":[],"x":"\ud800"}"#, "x", "an escape"),
    (
        "keep",
        r#"{"items":[],"x":"\udc00\ud800"}"#,
        "x",
        "an escape",
    ),
    ("keep", r#"{"items":[],"x":"\q"}"#, "x", "an escape"),
    (
        "keep",
        "{\"items\":[],\"x\":\"\u{1}\"}",
        "x",
        "control character",
    ),
    ("keep", "\u{feff}{}", ".", "expected a value"),
    ("keep", "null", ".", "an object is needed"),
    ("keep", "[[]]", ".", "an object is needed"),
    (
        "open",
        r#"{"amount":1,"amuont":2}"#,
        "amuont",
        "unknown field",
    ),
    (
        "open",
        r#"{"amount":9223372036854775808}"#,
        "amount",
        "expected i64",
    ),
];

#[test]
fn r5_what_is_wrong_with_a_body_is_told_with_its_path() {
    let fixture = Fixture::new(AccessMode::Open);
    for (command, body, path, reason) in BAD_BODIES {
        let (found_path, found_reason) = refusal(&fixture, command, *body);
        assert_eq!(found_path, *path, "{body}: {found_reason}");
        assert!(found_reason.contains(reason), "{body}: {found_reason}");
        assert!(
            !found_reason.contains(" at line "),
            "{body}: {found_reason}"
        );
    }
}

#[test]
fn r5_invalid_utf8_is_told_with_the_field_that_holds_it() {
    let fixture = Fixture::new(AccessMode::Open);
    for (body, path) in [
        (
            &b"{\"items\":[{\"price\":1},{\"n\":\"\xff\"}]}"[..],
            "items[1].n",
        ),
        (b"{\"items\":[]}\xc0", "."),
        (b"\xed\xa0\x80", "."),
    ] {
        let (found, reason) = refusal(&fixture, "keep", body);
        assert_eq!(found, path);
        assert!(reason.contains("invalid UTF-8 at byte"), "{reason}");
    }
}

#[test]
fn r5_a_body_of_128_levels_is_refused_and_one_of_127_is_not() {
    let fixture = Fixture::new(AccessMode::Open);
    let nested = |levels: usize| {
        let inner = levels - 1;
        format!(r#"{{"value":{}{}}}"#, "[".repeat(inner), "]".repeat(inner))
    };
    assert!(
        fixture
            .admit(Submission::json("ownerless", "put", nested(127)))
            .is_ok()
    );
    for levels in [128, 129, 20_000] {
        let (path, reason) = refusal(&fixture, "put", nested(levels));
        assert!(path.starts_with("value[0]"), "{path}");
        assert!(
            path.len() < 1100,
            "a path that is repeated to the caller is bounded"
        );
        assert!(reason.contains("128 levels"), "{reason}");
    }
}

#[test]
fn r5_what_an_answer_repeats_of_a_body_is_bounded() {
    let fixture = Fixture::new(AccessMode::Open);
    let long = "é".repeat(20_000);
    let (path, _) = refusal(&fixture, "open", format!(r#"{{"{long}":1}}"#));
    assert!(path.chars().count() <= 257);
    let (_, reason) = refusal(&fixture, "open", format!(r#"{{"amount":"{long}"}}"#));
    assert!(reason.chars().count() <= 513);
}

#[test]
fn r5_unknown_fields_are_refused_unless_the_type_takes_them() {
    let fixture = Fixture::new(AccessMode::Open);
    let (path, _) = refusal(&fixture, "open", r#"{"amount":1,"note":{"a":1}}"#);
    assert_eq!(path, "note");
    let nested = r#"{"items":[{"price":1},{"price":1,"note":2}]}"#;
    assert_eq!(refusal(&fixture, "open", nested).0, "items[1].note");
    let lenient = r#"{"items":[{"price":1,"note":"x"}],"more":[1e400]}"#;
    assert!(
        fixture
            .admit(Submission::json("ownerless", "keep", lenient))
            .is_ok()
    );
}

#[test]
fn r5_every_broken_rule_is_told_at_once() {
    let fixture = Fixture::new(AccessMode::Open);
    let body = r#"{"amount":-1,"name":"nobody"}"#;
    let error = fixture.error(Submission::json("ownerless", "open", body));
    assert_eq!(error.code(), "wow.command.invalid");
    let names: Vec<_> = error
        .binding_errors()
        .into_iter()
        .map(|fault| fault.name)
        .collect();
    assert_eq!(names, ["amount", "name"]);
}

#[test]
fn r5_a_typed_command_is_validated_too() {
    let fixture = Fixture::new(AccessMode::Open);
    let mut request = Submission::json("ownerless", "open", "");
    request.body = Body::Typed(Arc::new(Open {
        amount: -1,
        ..Open::default()
    }));
    assert_eq!(fixture.error(request).code(), "wow.command.invalid");
}

#[test]
fn r5_a_body_beyond_the_bound_is_refused_unread() {
    let fixture = Fixture::new(AccessMode::Open);
    let body = |bytes: usize| format!(r#"{{"value":"{}"}}"#, "x".repeat(bytes - 12));
    assert!(
        fixture
            .admit(Submission::json("ownerless", "put", body(64 * 1024)))
            .is_ok()
    );
    let error = fixture.error(Submission::json("ownerless", "put", body(64 * 1024 + 1)));
    assert_eq!(error, CommandError::BodyTooLarge { limit: 64 * 1024 });
}

#[test]
fn r5_a_missing_body_stands_for_the_one_that_the_type_declares() {
    let fixture = Fixture::new(AccessMode::Open);
    for body in ["", "  ", "{}"] {
        assert!(
            fixture
                .admit(Submission::json("ownerless", "ping", body))
                .is_ok(),
            "{body:?}"
        );
    }
    assert_eq!(refusal(&fixture, "ping", r#"{"a":1}"#).0, "a");
}

fn value(source: VariableSource, name: &str, text: &str) -> VariableValue {
    VariableValue {
        source,
        name: name.into(),
        value: text.into(),
    }
}

fn fill(body: &str, variables: &[VariableValue]) -> Result<Fill, CommandError> {
    let mut request = Submission::json("ownerless", "fill", body.to_owned());
    request.variables = variables.to_vec();
    let built = Fixture::new(AccessMode::Open).admit(request)?;
    assert_eq!(built.identity.key.id.as_str(), "7");
    Ok(built.payload.downcast_ref::<Fill>().unwrap().clone())
}

#[test]
fn r5_path_and_header_variables_fill_their_fields_byte_for_byte() {
    use VariableSource::{Header, Path};
    let id = value(Path, "fill_id", "7");
    let text = value(Header, "fill-text", r#"12"\ é"#);
    let count = value(Path, "count", "18446744073709551615");
    let all = [id.clone(), text.clone(), count];
    let expected = Fill {
        id: "7".into(),
        text: r#"12"\ é"#.into(),
        count: Some(u64::MAX),
        more: 9_007_199_254_740_993,
    };
    assert_eq!(
        fill(r#" { "more":9007199254740993 } "#, &all).unwrap(),
        expected
    );
    // Text that looks like a number stays text where the field is text.
    let numeric = [id.clone(), value(Header, "Fill-Text", "007")];
    for body in ["", "{}", r#"{"id":"7"}"#, r#"{"text":"\u003007"}"#] {
        let filled = fill(body, &numeric).unwrap();
        assert_eq!(
            (filled.id.as_str(), filled.text.as_str(), filled.count),
            ("7", "007", None)
        );
    }
    // Of the other source, or undeclared: not meant.
    let strays = [
        value(Header, "fill_id", "8"),
        value(Path, "other", "9"),
        id,
        text,
    ];
    assert!(fill("{}", &strays).is_ok());
}

#[test]
fn r5_a_variable_is_never_contradicted_doubled_or_misread() {
    use VariableSource::{Header, Path};
    let id = || value(Path, "fill_id", "7");
    let text = || value(Header, "Fill-Text", "t");
    let path_of = |outcome: Result<Fill, CommandError>| match outcome {
        Err(CommandError::BodyInvalid { path, .. }) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(path_of(fill(r#"{"text":"u"}"#, &[id(), text()])), "text");
    assert_eq!(path_of(fill("[]", &[id(), text()])), ".");
    assert_eq!(path_of(fill("{}", &[id()])), ".");
    for bad in ["1.5", "-1", "0x1", "NaN", "1,\"more\":1", "", " 1", "007"] {
        let count = value(Path, "count", bad);
        assert_eq!(
            path_of(fill("{}", &[id(), text(), count])),
            "count",
            "{bad:?}"
        );
    }
    let twice = [id(), text(), value(Header, "fill-text", "u")];
    let error = fill("{}", &twice).unwrap_err();
    assert!(
        matches!(error, CommandError::ParameterInvalid { .. }),
        "{error}"
    );
    let same_twice = [id(), text(), value(Header, "FILL-TEXT", "t")];
    assert!(fill("{}", &same_twice).is_ok());
    // The variable of the marked field is a source of the aggregate id (R3).
    let error = fill(r#"{"id":"8"}"#, &[id(), text()]).unwrap_err();
    assert_eq!(error.code(), "wow.command.identity-conflict");
}

/// JSON text as clients write it: any digits, any blanks, any escapes.
fn json_text() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?";
    let scalar = prop_oneof![
        number.prop_map(|text| text),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        Just("\"\\u00e9\\/\\ud83d\\ude00\"".to_owned()),
        prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(str::to_owned),
    ];
    scalar.prop_recursive(6, 64, 6, |inner| {
        let blank = "[ \t\r\n]{0,2}";
        let items = proptest::collection::vec((inner, blank), 0..6);
        (items, any::<bool>()).prop_map(|(items, is_array)| {
            let part = |(index, (item, blank)): (usize, &(String, String))| match is_array {
                true => format!("{blank}{item}{blank}"),
                false => format!("{blank}\"k{index}\"{blank}:{blank}{item}"),
            };
            let parts: Vec<_> = items.iter().enumerate().map(part).collect();
            match is_array {
                true => format!("[{}]", parts.join(",")),
                false => format!("{{{}}}", parts.join(",")),
            }
        })
    })
}

proptest! {
    #[test]
    fn r5_whatever_the_bytes_admission_answers(bytes in any::<Vec<u8>>()) {
        let fixture = Fixture::new(AccessMode::Open);
        for command in ["open", "put", "keep", "fill"] {
            let request = Submission::json("ownerless", command, bytes.clone());
            let outcome = fixture.admit(request.aggregate_id("1"));
            prop_assert!(outcome.err().is_none_or(|error| error != CommandError::Panicked));
        }
    }

    #[test]
    fn r5_values_come_through_byte_for_byte(text in json_text()) {
        let fixture = Fixture::new(AccessMode::Open);
        let body = format!("{{\"value\":{text}}}");
        let built = fixture.admit(Submission::json("ownerless", "put", body)).unwrap();
        prop_assert_eq!(built.payload.downcast_ref::<Put>().unwrap().value.get(), text.trim());
    }

    #[test]
    fn r5_whole_numbers_of_64_bits_come_through_a_typed_field(amount in any::<i64>()) {
        let fixture = Fixture::new(AccessMode::Open);
        let amount = amount.saturating_abs();
        let body = format!("{{\"amount\":{amount}}}");
        let built = fixture.admit(Submission::json("ownerless", "open", body)).unwrap();
        prop_assert_eq!(built.payload.downcast_ref::<Open>().unwrap().amount, amount);
    }

    #[test]
    fn r5_the_first_reading_takes_what_the_decoder_takes(mut text in json_text(), cut in any::<proptest::sample::Index>(), junk in any::<char>()) {
        // Broken somewhere: the two readers must agree on whether it is JSON at all.
        let place = cut.index(text.len() + 1);
        if text.is_char_boundary(place) {
            text.insert(place, junk);
        }
        let first = super::super::json::scan(text.as_bytes(), &|_| false);
        let decoder = serde_json::from_str::<&RawValue>(&text);
        match first {
            Ok(_) => prop_assert!(decoder.is_ok(), "{text:?}"),
            Err(fault) => {
                let is_stricter = fault.reason.contains("twice") || fault.reason.contains("escape");
                prop_assert!(decoder.is_err() || is_stricter, "{text:?}: {fault:?}");
            }
        }
    }
}
