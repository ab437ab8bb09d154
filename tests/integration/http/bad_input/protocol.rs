//! Paths and methods that aren't there, requests beyond the bounds, and what is no HTTP at all.

use serde_json::json;

use super::{Case, all_are_refused, lock};
use crate::support::database::Database;
use crate::support::socket::{Socket, status_and_code};
use crate::support::{Folder, Node};

#[tokio::test]
async fn a_request_that_no_route_takes_is_refused_with_the_reason() {
    all_are_refused(|client| {
        let body = json!({"amount": 1});
        let no_command = client.post("/account/ann/no_such_command", &body);
        let delete = client.delete("/account/ann/lock_amount");
        let not_utf_8 = client.put("/account/%FF/lock_amount", &body);
        let long = client.get(&format!("/account/{}/state", "x".repeat(9000)));
        let headers = lock(client).header("X-Long", &"x".repeat(70_000));
        vec![
            Case::new("no such path", no_command, (404, "wow.http.not-found")),
            Case::new(
                "another method",
                delete,
                (405, "wow.http.method-not-allowed"),
            ),
            Case::new("no UTF-8", not_utf_8, (400, "wow.http.path-invalid")),
            Case::new("a long URL", long, (414, "wow.http.uri-too-long")),
            Case::new("long headers", headers, (431, "wow.http.headers-too-large")),
        ]
    })
    .await;
}

const HEAD: &str = "POST /account/ann/prepare HTTP/1.1\r\nHost: x\r\n\
                    Content-Type: application/json\r\n";
const BODY: &str = r#"{"to":"bob","amount":1}"#;

/// What follows the head of a request, and the code where an answer has one.
const BROKEN: [(&str, &str, &str); 7] = [
    (
        "two lengths",
        "Content-Length: 23\r\nContent-Length: 24\r\n\r\n",
        "",
    ),
    ("a negative length", "Content-Length: -1\r\n\r\n", ""),
    (
        "length and chunks",
        "Content-Length: 23\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "",
    ),
    ("no name", ": x\r\nContent-Length: 23\r\n\r\n", ""),
    (
        "a name with a blank",
        "Command Type: x\r\nContent-Length: 23\r\n\r\n",
        "",
    ),
    (
        "a broken chunk",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "wow.http.body-broken",
    ),
    (
        "a body that ends early",
        "Content-Length: 99\r\n\r\n",
        "wow.http.body-broken",
    ),
];

#[tokio::test]
async fn what_is_no_http_leaves_nothing_and_the_node_goes_on() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;
    let broken = BROKEN.map(|(what, rest, code)| (what, format!("{HEAD}{rest}{BODY}"), code));
    let others = [
        ("nonsense", "nonsense\r\n\r\n".to_owned(), ""),
        ("no version", "GET /health/live\r\n\r\n".to_owned(), ""),
    ];
    for (what, request, code) in broken.into_iter().chain(others) {
        let mut socket = Socket::connect(node.address()).await;
        socket.send(request.as_bytes()).await;
        socket.finish().await;
        let answer = socket.rest().await;
        assert_eq!(status_and_code(&answer), (400, code), "{what}: {answer}");
    }
    let database = Database::open(&folder.database()).await;
    assert_eq!(database.commits().await, 1);
    database.close().await;
    client.state("/account/ann").await;
    node.stop().await;
}
