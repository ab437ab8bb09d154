//! Bad input over a real socket: a clear error with its code, status and field; nothing changes.

use serde_json::{Value, json};

use crate::support::client::Request;
use crate::support::database::Database;
use crate::support::socket::{Socket, status_and_code};
use crate::support::{Client, Folder, Node};

/// A request that has to be refused.
struct Case {
    what: &'static str,
    request: Request,
    status: u16,
    code: &'static str,
    /// The field, header or fact that the first binding error names; none where the code says all.
    field: Option<&'static str>,
}

/// Sends each to a node with one account, and looks at the log before and after.
async fn all_are_refused(cases: impl FnOnce(&Client) -> Vec<Case>) {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;
    let database = Database::open(&folder.database()).await;
    for case in cases(&client) {
        let answer = case.request.send().await;
        let told = (answer.status, answer.code().to_owned());
        assert_eq!(
            told,
            (case.status, case.code.to_owned()),
            "{}: {}",
            case.what,
            answer.text
        );
        let body = answer.refused(case.status, case.code);
        if let Some(field) = case.field {
            assert_eq!(
                body["bindingErrors"][0]["name"], field,
                "{}: {body}",
                case.what
            );
            assert_ne!(body["bindingErrors"][0]["msg"], "", "{}", case.what);
        }
        assert_eq!(
            database.commits().await,
            1,
            "{} changed something",
            case.what
        );
    }
    database.close().await;
    // And it goes on as if nothing had been.
    let lock = client.put("/account/ann/lock_amount", &json!({"amount": 1}));
    assert_eq!(lock.ok().await["aggregateVersion"], 2);
    node.stop().await;
}

fn json_body(client: &Client, path: &str, body: impl Into<Vec<u8>>) -> Request {
    let request = client.request(reqwest::Method::POST, path);
    request
        .header("Content-Type", "application/json")
        .body(body)
}

/// Levels of nesting inside a field that nobody knows.
fn deep(levels: usize) -> String {
    format!(
        r#"{{"to":"bob","amount":1,"x":{}1{}}}"#,
        "[".repeat(levels),
        "]".repeat(levels)
    )
}

#[tokio::test]
async fn r5_a_body_that_is_no_such_command_is_refused_at_the_field() {
    all_are_refused(|client| {
        let invalid = "wow.command.body-invalid";
        let body = |what, body: Vec<u8>, field| Case {
            what,
            request: json_body(client, "/account/ann/prepare", body),
            status: 400,
            code: invalid,
            field,
        };
        let text = |what, text: &str, field| body(what, text.as_bytes().to_vec(), field);
        let mut not_utf_8 = br#"{"to":"b"#.to_vec();
        not_utf_8.extend_from_slice(b"\xff\xfe\",\"amount\":1}");
        vec![
            text("nothing", "", None),
            text("truncated", r#"{"to":"bob","amount":"#, Some("amount")),
            text("truncated in a text", r#"{"to":"bo"#, Some("to")),
            text("two values", r#"{"to":"bob","amount":1} {}"#, None),
            text("no object", r#"["bob",1]"#, None),
            text("no JSON", "to=bob&amount=1", None),
            text(
                "a doubled key",
                r#"{"to":"bob","amount":1,"amount":2}"#,
                Some("amount"),
            ),
            text(
                "a doubled key, escaped",
                r#"{"to":"bob","\u0074o":"x","amount":1}"#,
                Some("to"),
            ),
            text(
                "an unknown field",
                r#"{"to":"bob","amount":1,"fee":1}"#,
                Some("fee"),
            ),
            text("a missing field", r#"{"to":"bob"}"#, None),
            text(
                "a text for a number",
                r#"{"to":"bob","amount":"1"}"#,
                Some("amount"),
            ),
            text("a number for a text", r#"{"to":7,"amount":1}"#, Some("to")),
            text("null", r#"{"to":"bob","amount":null}"#, Some("amount")),
            text("a fraction", r#"{"to":"bob","amount":1.5}"#, Some("amount")),
            text(
                "above i64",
                r#"{"to":"bob","amount":9223372036854775808}"#,
                Some("amount"),
            ),
            text(
                "far above",
                r#"{"to":"bob","amount":1e400}"#,
                Some("amount"),
            ),
            text("NaN", r#"{"to":"bob","amount":NaN}"#, Some("amount")),
            text(
                "infinity",
                r#"{"to":"bob","amount":-Infinity}"#,
                Some("amount"),
            ),
            text(
                "a leading zero",
                r#"{"to":"bob","amount":01}"#,
                Some("amount"),
            ),
            text(
                "half a surrogate",
                r#"{"to":"\ud800","amount":1}"#,
                Some("to"),
            ),
            text(
                "a raw line break",
                "{\"to\":\"b\nob\",\"amount\":1}",
                Some("to"),
            ),
            text("a comment", r#"{"to":"bob",/* */"amount":1}"#, None),
            text("a trailing comma", r#"{"to":"bob","amount":1,}"#, None),
            text(
                "a byte order mark",
                "\u{feff}{\"to\":\"bob\",\"amount\":1}",
                None,
            ),
            text("128 levels", &deep(128), None),
            text("100000 levels", &deep(100_000), None),
            body("no UTF-8", not_utf_8, Some("to")),
        ]
    })
    .await;
}

#[tokio::test]
async fn r5_a_command_that_breaks_its_types_rules_is_told_every_fault() {
    all_are_refused(|client| {
        let case = |what, request, field| Case {
            what,
            request,
            status: 400,
            code: "wow.command.invalid",
            field: Some(field),
        };
        let create = |body: &Value| client.post("/account/create_account", body);
        let cart = |body: &Value| client.post("/owner/ann/cart/add_cart_item", body);
        vec![
            case("blank", create(&json!({"name": " ", "balance": 1})), "name"),
            case(
                "negative",
                create(&json!({"name": "x", "balance": -1})),
                "balance",
            ),
            case(
                "zero",
                cart(&json!({"productId": "p", "quantity": 0})),
                "quantity",
            ),
            case(
                "no items",
                client.put(
                    "/owner/ann/cart/remove_cart_item",
                    &json!({"productIds": []}),
                ),
                "productIds",
            ),
        ]
    })
    .await;
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let both = node.client().post(
        "/account/create_account",
        &json!({"name": "", "balance": -1}),
    );
    let body = both.send().await.refused(400, "wow.command.invalid");
    assert_eq!(body["bindingErrors"].as_array().unwrap().len(), 2);
    node.stop().await;
}

#[tokio::test]
async fn a_body_of_another_kind_or_size_is_refused_before_it_is_read() {
    all_are_refused(|client| {
        let sound = r#"{"to":"bob","amount":1}"#;
        let typed = |content_type: &str| {
            let request = client.request(reqwest::Method::POST, "/account/ann/prepare");
            request.header("Content-Type", content_type).body(sound)
        };
        let unsupported = |what, request| Case {
            what,
            request,
            status: 415,
            code: "wow.http.unsupported-media-type",
            field: None,
        };
        let request = client.request(reqwest::Method::POST, "/account/ann/prepare");
        let huge = format!(r#"{{"to":"{}","amount":1}}"#, "x".repeat(1 << 20));
        vec![
            unsupported("no content type", request.body(sound)),
            unsupported("a form", typed("application/x-www-form-urlencoded")),
            unsupported("a text", typed("text/plain")),
            unsupported("XML", typed("application/xml")),
            unsupported("another charset", typed("application/json; charset=utf-16")),
            unsupported(
                "compressed",
                typed("application/json").header("Content-Encoding", "gzip"),
            ),
            Case {
                what: "huge",
                request: json_body(client, "/account/ann/prepare", huge),
                status: 413,
                code: "wow.command.body-too-large",
                field: None,
            },
        ]
    })
    .await;
}

#[tokio::test]
async fn a_header_that_can_not_be_used_is_named() {
    all_are_refused(|client| {
        let sound = json!({"amount": 1});
        let case = |what, name: &'static str, value: &[u8]| Case {
            what,
            request: client
                .put("/account/ann/lock_amount", &sound)
                .bytes_header(name, value),
            status: 400,
            code: "wow.command.parameter-invalid",
            field: Some(name),
        };
        let twice = |name: &'static str| {
            let mut case = case("doubled", name, b"1");
            case.request = case.request.header(name, "1");
            case
        };
        let mut cases = vec![
            case("an unknown stage", "Command-Wait-Stage", b"DONE"),
            case("a negative timeout", "Command-Wait-Timeout", b"-1"),
            case("no time", "Command-Wait-Timeout", b"0"),
            case("too much time", "Command-Wait-Timeout", b"300001"),
            case("a timeout that is none", "Command-Wait-Timeout", b"NaN"),
            case("a fraction", "Command-Wait-Timeout", b"1.5"),
            case("the old spelling", "Command-Wait-Timout", b"-1"),
            case("a negative version", "Command-Aggregate-Version", b"-1"),
            case(
                "a version beyond u64",
                "Command-Aggregate-Version",
                b"99999999999999999999",
            ),
            case("no truth", "Command-Local-First", b"maybe"),
            case(
                "a tail without saga",
                "Command-Wait-Tail-Stage",
                b"SNAPSHOT",
            ),
            case("no UTF-8", "Command-Wait-Stage", b"\xff\xfe"),
        ];
        cases.extend(
            [
                "Command-Aggregate-Id",
                "Command-Tenant-Id",
                "Command-Owner-Id",
                "Command-Space-Id",
                "Command-Request-Id",
                "Command-Wait-Stage",
                "Command-Wait-Timeout",
                "Command-Aggregate-Version",
                "Content-Type",
            ]
            .map(twice),
        );
        cases
    })
    .await;
}

#[tokio::test]
async fn r3_an_id_that_is_none_is_refused_wherever_it_comes_from() {
    all_are_refused(|client| {
        let case = |what, request, field| Case {
            what,
            request,
            status: 400,
            code: "wow.command.identity-invalid",
            field: Some(field),
        };
        let lock = |path: String| client.put(&path, &json!({"amount": 1}));
        let id = |what, id: &str| {
            case(
                what,
                lock(format!("/account/{id}/lock_amount")),
                "aggregate id",
            )
        };
        let header = |what, name, value: &[u8], field| {
            let request = lock("/account/ann/lock_amount".to_owned()).bytes_header(name, value);
            case(what, request, field)
        };
        vec![
            id("overlong", &"x".repeat(129)),
            id("a control character", "a%00b"),
            id("a line break", "a%0Ab"),
            id("a slash", "a%2Fb"),
            id("a blank before", "%20a"),
            id("a blank behind", "a%20"),
            id("a wide blank", "%E3%80%80a"),
            id("only a blank", "%20"),
            header("an empty id", "Command-Aggregate-Id", b"", "aggregate id"),
            header("an empty tenant", "Command-Tenant-Id", b"", "tenant"),
            header("an empty owner", "Command-Owner-Id", b"", "owner"),
            header("an empty space", "Command-Space-Id", b"", "space"),
            case(
                "an overlong tenant",
                client
                    .post("/owner/ann/sales-order", &json!({}))
                    .bytes_header("Command-Tenant-Id", &[b'x'; 129]),
                "tenant",
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn what_disagrees_or_is_reserved_or_unknown_is_refused() {
    all_are_refused(|client| {
        let lock = || client.put("/account/ann/lock_amount", &json!({"amount": 1}));
        let case = |what, request, status, code| Case {
            what,
            request,
            status,
            code,
            field: None,
        };
        let reused = "wow.command.request-id-invalid";
        let conflict = "wow.command.identity-conflict";
        vec![
            case(
                "path and header",
                lock().header("Command-Aggregate-Id", "bob"),
                400,
                conflict,
            ),
            case(
                "another tenant",
                lock().header("Command-Tenant-Id", "acme"),
                400,
                conflict,
            ),
            case(
                "two spaces",
                lock()
                    .header("Command-Space-Id", "a")
                    .header("Wow-Space-Id", "b"),
                400,
                conflict,
            ),
            case(
                "ours",
                lock().header("Command-Request-Id", "wow:s:x"),
                400,
                reused,
            ),
            case(
                "invisible",
                lock().header("Command-Request-Id", "a b"),
                400,
                reused,
            ),
            case(
                "empty",
                lock().header("Command-Request-Id", ""),
                400,
                reused,
            ),
            case(
                "overlong",
                lock().header("Command-Request-Id", &"x".repeat(129)),
                400,
                reused,
            ),
            case(
                "a stage nobody reaches",
                lock().header("Command-Wait-Stage", "PROJECTED"),
                400,
                "wow.wait.stage-unavailable",
            ),
            case(
                "a saga that isn't there",
                lock()
                    .header("Command-Wait-Stage", "SAGA_HANDLED")
                    .header("Command-Wait-Processor", "NoSuchSaga"),
                400,
                "wow.wait.stage-unavailable",
            ),
            case(
                "a chain",
                lock()
                    .header("Command-Wait-Stage", "SAGA_HANDLED")
                    .header("Command-Wait-Tail-Stage", "PROCESSED"),
                400,
                "wow.wait.stage-unavailable",
            ),
            case(
                "another version",
                lock().header("Command-Aggregate-Version", "7"),
                409,
                "wow.command.version-mismatch",
            ),
            case(
                "no such command",
                client
                    .post("/wow/command/send", &json!({}))
                    .header("Command-Type", "no_such_command"),
                404,
                "wow.command.type-unknown",
            ),
            case(
                "no such path",
                client.post("/account/ann/no_such_command", &json!({})),
                404,
                "wow.http.not-found",
            ),
            case(
                "another method",
                client.delete("/account/ann/lock_amount"),
                405,
                "wow.http.method-not-allowed",
            ),
            case(
                "a path that is no UTF-8",
                client.put("/account/%FF/lock_amount", &json!({"amount": 1})),
                400,
                "wow.http.path-invalid",
            ),
            case(
                "a long URL",
                client.get(&format!("/account/{}/state", "x".repeat(9000))),
                414,
                "wow.http.uri-too-long",
            ),
            case(
                "long headers",
                lock().header("X-Long", &"x".repeat(70_000)),
                431,
                "wow.http.headers-too-large",
            ),
        ]
    })
    .await;
}

#[tokio::test]
async fn what_is_no_http_leaves_nothing_and_the_node_goes_on() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;
    let head =
        "POST /account/ann/prepare HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
    let body = r#"{"to":"bob","amount":1}"#;
    for (what, request, expected) in [
        ("no HTTP", "nonsense\r\n\r\n".to_owned(), (400, "")),
        (
            "no version",
            "GET /health/live\r\n\r\n".to_owned(),
            (400, ""),
        ),
        (
            "two lengths",
            format!("{head}Content-Length: 23\r\nContent-Length: 24\r\n\r\n{body}"),
            (400, ""),
        ),
        (
            "a length that is none",
            format!("{head}Content-Length: -1\r\n\r\n{body}"),
            (400, ""),
        ),
        (
            "length and chunks",
            format!("{head}Content-Length: 23\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            (400, ""),
        ),
        (
            "a header's name that is none",
            format!("{head}Command Request-Id: x\r\nContent-Length: 23\r\n\r\n{body}"),
            (400, ""),
        ),
        (
            "a broken chunk",
            format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{body}\r\n0\r\n\r\n"),
            (400, "wow.http.body-broken"),
        ),
        (
            "a body that ends early",
            format!("{head}Content-Length: 100\r\n\r\n{body}"),
            (400, "wow.http.body-broken"),
        ),
    ] {
        let mut socket = Socket::connect(node.address()).await;
        socket.send(request.as_bytes()).await;
        socket.finish().await;
        let answer = socket.rest().await;
        assert_eq!(status_and_code(&answer), expected, "{what}: {answer}");
    }
    let database = Database::open(&folder.database()).await;
    assert_eq!(database.commits().await, 1);
    database.close().await;
    client.state("/account/ann").await;
    node.stop().await;
}
