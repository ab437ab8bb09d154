//! R5: bodies that are none, break their type's rules, or are of another kind or size.

use serde_json::{Value, json};

use super::{Case, all_are_refused};
use crate::support::client::Request;
use crate::support::{Client, Folder, Node};

/// What, the body of a `prepare`, and the field that is named; `.` is the body itself.
const BAD: [(&str, &str, &str); 28] = [
    ("nothing", "", "."),
    ("truncated", r#"{"to":"bob","amount":"#, "amount"),
    ("truncated in a text", r#"{"to":"bo"#, "to"),
    (
        "truncated behind a field",
        r#"{"to":"bob","amount":1"#,
        "amount",
    ),
    ("two values", r#"{"to":"bob","amount":1} {}"#, "."),
    ("an array", r#"["bob",1]"#, "."),
    ("null", "null", "."),
    ("a form", "to=bob&amount=1", "."),
    (
        "a doubled key",
        r#"{"to":"bob","amount":1,"amount":2}"#,
        "amount",
    ),
    (
        "a doubled key, escaped",
        r#"{"to":"bob","\u0074o":"x","amount":1}"#,
        "to",
    ),
    (
        "a doubled key below",
        r#"{"to":"bob","amount":1,"x":{"a":1,"a":1}}"#,
        "x.a",
    ),
    (
        "an unknown field",
        r#"{"to":"bob","amount":1,"fee":1}"#,
        "fee",
    ),
    ("a missing field", r#"{"to":"bob"}"#, "."),
    (
        "a text for a number",
        r#"{"to":"bob","amount":"1"}"#,
        "amount",
    ),
    ("a number for a text", r#"{"to":7,"amount":1}"#, "to"),
    (
        "null for a number",
        r#"{"to":"bob","amount":null}"#,
        "amount",
    ),
    ("a fraction", r#"{"to":"bob","amount":1.5}"#, "amount"),
    (
        "above i64",
        r#"{"to":"bob","amount":9223372036854775808}"#,
        "amount",
    ),
    (
        "below i64",
        r#"{"to":"bob","amount":-9223372036854775809}"#,
        "amount",
    ),
    ("far above", r#"{"to":"bob","amount":1e400}"#, "amount"),
    ("NaN", r#"{"to":"bob","amount":NaN}"#, "amount"),
    ("infinity", r#"{"to":"bob","amount":-Infinity}"#, "amount"),
    ("a leading zero", r#"{"to":"bob","amount":01}"#, "amount"),
    ("half a surrogate", r#"{"to":"\ud800","amount":1}"#, "to"),
    ("a raw line break", "{\"to\":\"b\nob\",\"amount\":1}", "to"),
    ("a comment", r#"{/* to */"to":"bob","amount":1}"#, "."),
    ("a trailing comma", r#"{"to":"bob","amount":1,}"#, "amount"),
    (
        "a byte order mark",
        "\u{feff}{\"to\":\"bob\",\"amount\":1}",
        ".",
    ),
];

fn prepare(client: &Client, body: impl Into<Vec<u8>>) -> Request {
    let request = client.request(reqwest::Method::POST, "/account/ann/prepare");
    let request = request.header("Content-Type", "application/json");
    request.body(body)
}

/// Levels of nesting in a field that nobody knows.
fn deep(levels: usize) -> String {
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    format!(r#"{{"to":"bob","amount":1,"x":{open}1{close}}}"#)
}

#[tokio::test]
async fn r5_a_body_that_is_no_such_command_is_refused_at_the_field() {
    all_are_refused(|client| {
        let refusal = (400, "wow.command.body-invalid");
        let texts = BAD.iter().map(|(what, body, field)| {
            let case = Case::new(what, prepare(client, *body), refusal);
            case.naming(field)
        });
        let not_utf_8 = [&b"{\"to\":\"b"[..], b"\xff\xfe\",\"amount\":1}"].concat();
        let others = [
            Case::new("127 levels", prepare(client, deep(127)), refusal),
            Case::new("128 levels", prepare(client, deep(128)), refusal),
            Case::new("100 000 levels", prepare(client, deep(100_000)), refusal),
            Case::new("no UTF-8", prepare(client, not_utf_8), refusal).naming("to"),
        ];
        texts.chain(others).collect()
    })
    .await;
}

#[tokio::test]
async fn r5_a_command_that_breaks_its_types_rules_is_told_the_field() {
    all_are_refused(|client| {
        let case = |what, request, field| {
            let case = Case::new(what, request, (400, "wow.command.invalid"));
            case.naming(field)
        };
        let create = |body: &Value| client.post("/account/create_account", body);
        let blank = create(&json!({"name": " ", "balance": 1}));
        let negative = create(&json!({"name": "x", "balance": -1}));
        let none = json!({"productId": "p", "quantity": 0});
        let none = client.post("/owner/ann/cart/add_cart_item", &none);
        let empty = json!({"productIds": []});
        let empty = client.put("/owner/ann/cart/remove_cart_item", &empty);
        vec![
            case("blank", blank, "name"),
            case("negative", negative, "balance"),
            case("zero", none, "quantity"),
            case("an empty list", empty, "productIds"),
        ]
    })
    .await;
}

#[tokio::test]
async fn r5_every_broken_rule_is_told_at_once() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let both = json!({"name": "", "balance": -1});
    let both = client.post("/account/create_account", &both).send().await;
    let body = both.refused(400, "wow.command.invalid");
    assert_eq!(body["bindingErrors"].as_array().unwrap().len(), 2);
    node.stop().await;
}

#[tokio::test]
async fn a_body_of_another_kind_is_not_read() {
    all_are_refused(|client| {
        let bare = || {
            let request = client.request(reqwest::Method::POST, "/account/ann/prepare");
            request.body(r#"{"to":"bob","amount":1}"#)
        };
        let typed = |content_type| bare().header("Content-Type", content_type);
        let gzip = typed("application/json").header("Content-Encoding", "gzip");
        let requests = [
            ("no content type", bare()),
            ("a form", typed("application/x-www-form-urlencoded")),
            ("a text", typed("text/plain")),
            ("XML", typed("application/xml")),
            ("another charset", typed("application/json; charset=utf-16")),
            ("compressed", gzip),
        ];
        let refusal = (415, "wow.http.unsupported-media-type");
        requests
            .map(|(what, request)| Case::new(what, request, refusal))
            .into()
    })
    .await;
}

#[tokio::test]
async fn r5_a_huge_body_is_refused_before_it_is_read() {
    all_are_refused(|client| {
        let huge = format!(r#"{{"to":"{}","amount":1}}"#, "x".repeat(1 << 20));
        let refusal = (413, "wow.command.body-too-large");
        vec![Case::new("huge", prepare(client, huge), refusal)]
    })
    .await;
}
