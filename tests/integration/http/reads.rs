//! Reads: states, snapshots, commits and traces of one aggregate.

use serde_json::{Value, json};

use crate::support::{Folder, Node};

#[tokio::test]
async fn an_account_is_read_now_at_a_version_and_at_a_time() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let created = client.create_account("ann", 100).await;
    let lock = |amount: i64| client.put("/account/ann/lock_amount", &json!({"amount": amount}));
    lock(30).ok().await;
    lock(20).ok().await;

    let state = client.state("/account/ann").await;
    let expected = |balance: i64, locked: i64| {
        json!({
            "id": "ann", "name": "ann", "balanceAmount": balance, "lockedAmount": locked,
            "frozen": false,
        })
    };
    assert_eq!(state, expected(50, 50));
    for (version, balance, locked) in [(1, 100, 0), (2, 70, 30), (3, 50, 50)] {
        let state = client
            .get(&format!("/account/ann/state/{version}"))
            .ok()
            .await;
        assert_eq!(state, expected(balance, locked), "{version}");
    }
    let commits = client.get("/account/ann/event/1/3").ok().await;
    let time = commits[0]["createTime"].as_i64().unwrap();
    let at = |time: i64| client.get(&format!("/account/ann/state/time/{time}"));
    at(time - 1)
        .send()
        .await
        .refused(404, "wow.aggregate.not-found");
    assert_eq!(at(i64::MAX).ok().await, expected(50, 50));

    let snapshot = client.get("/account/ann/snapshot").ok().await;
    assert_eq!(
        (&snapshot["version"], &snapshot["state"]),
        (&json!(3), &expected(50, 50))
    );
    assert_eq!(
        (&snapshot["tenantId"], &snapshot["deleted"]),
        (&json!("(0)"), &json!(false))
    );
    assert_eq!(snapshot["firstEventTime"].as_i64(), Some(time));
    assert_eq!(snapshot["eventId"], commits[2]["id"]);
    assert_eq!(commits[0]["commandId"], created["commandId"]);
    node.stop().await;
}

#[tokio::test]
async fn commits_are_read_by_range_and_with_the_states_they_made() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;
    let lock = client
        .put("/account/ann/lock_amount", &json!({"amount": 30}))
        .header("Command-Request-Id", "r-1")
        .header("Command-Header-Channel", "app");
    let locked = lock.ok().await;

    let commits = client.get("/account/ann/event/2/9").ok().await;
    let [commit] = &commits.as_array().unwrap()[..] else {
        panic!("{commits}")
    };
    assert_eq!(
        (&commit["version"], &commit["requestId"]),
        (&json!(2), &json!("r-1"))
    );
    assert_eq!(
        (&commit["id"], &commit["aggregateId"]),
        (&locked["commandId"], &json!("ann"))
    );
    assert_eq!(commit["header"]["channel"], "app");
    let event = &commit["body"][0];
    assert_eq!(
        (&event["name"], &event["body"]),
        (&json!("amount_locked"), &json!({"amount": 30}))
    );

    let traced = client.get("/account/ann/state/tracing").ok().await;
    let balances: Vec<_> = traced
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| &commit["state"]["balanceAmount"])
        .collect();
    assert_eq!(balances, [100, 70]);
    let last = client.get("/account/ann/state/tracing?limit=1").ok().await;
    assert_eq!(last.as_array().unwrap().len(), 1);
    assert_eq!(last[0]["version"], 2);
    node.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_deleted_or_not_reached_says_so() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;
    let refused = async |path: &str, status: u16, code: &str| {
        client.get(path).send().await.refused(status, code);
    };
    refused("/account/bob/state", 404, "wow.aggregate.not-found").await;
    refused("/account/bob/snapshot", 404, "wow.aggregate.not-found").await;
    refused("/account/bob/event/1/9", 404, "wow.aggregate.not-found").await;
    refused(
        "/account/ann/state/2",
        400,
        "wow.aggregate.version-not-reached",
    )
    .await;
    for path in [
        "/account/ann/state/-1",
        "/account/ann/state/x",
        "/account/ann/state/99999999999999999999",
        "/account/ann/state/time/x",
        "/account/ann/event/0/2",
        "/account/ann/event/2/1",
        "/account/ann/state/tracing?limit=0",
        "/account/ann/state/tracing?limit=1&limit=2",
        "/account/ann/state/tracing?headVersion=-1",
    ] {
        refused(path, 400, "wow.command.parameter-invalid").await;
    }
    client.delete("/account/ann").ok().await;
    for path in [
        "/account/ann/state",
        "/account/ann/snapshot",
        "/account/ann/state/1",
    ] {
        refused(path, 404, "wow.aggregate.not-found").await;
    }
    let lock = client.put("/account/ann/lock_amount", &json!({"amount": 1}));
    lock.send().await.refused(410, "wow.aggregate.deleted");
    client.put("/account/ann/recover", &json!({})).ok().await;
    assert_eq!(client.state("/account/ann").await["balanceAmount"], 100);
    node.stop().await;
}

#[tokio::test]
async fn a_type_whose_owner_is_its_id_is_read_without_an_id() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let add = |product: &str| {
        let body = json!({"productId": product});
        client.post("/owner/ann/cart/add_cart_item", &body)
    };
    add("p-1").ok().await;
    add("p-2").ok().await;
    assert_eq!(client.state("/owner/ann/cart").await["size"], 2);
    assert_eq!(client.get("/owner/ann/cart/state/1").ok().await["size"], 1);
    assert_eq!(
        client.get("/owner/ann/cart/snapshot").ok().await["version"],
        2
    );
    let commits = client.get("/owner/ann/cart/event/1/2").ok().await;
    assert_eq!(commits[1]["ownerId"], "ann");
    let answer = client.get("/owner/bob/cart/state").send().await;
    answer.refused(404, "wow.aggregate.not-found");
    node.stop().await;
}

#[tokio::test]
async fn exact_numbers_survive_byte_for_byte() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", i64::MAX).await;
    let text = client.get("/account/ann/state").send().await.text;
    assert!(
        text.contains(r#""balanceAmount":9223372036854775807"#),
        "{text}"
    );
    let text = client.get("/account/ann/event/1/1").send().await.text;
    assert!(text.contains(r#""balance":9223372036854775807"#), "{text}");
    // One more than an account can hold is refused, never wrapped.
    let entry = client.put("/account/ann/entry", &json!({"sourceId": "x", "amount": 1}));
    entry.send().await.refused(400, "account.amount-overflow");
    node.stop().await;
}

#[tokio::test]
async fn reads_come_from_the_log_after_a_restart_too() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    node.client().create_account("ann", 100).await;
    let pages = ["state", "snapshot", "event/1/1", "state/tracing", "state/1"];
    let read = async |node: &Node| {
        let mut texts: Vec<Value> = Vec::new();
        for page in pages {
            texts.push(
                node.client()
                    .get(&format!("/account/ann/{page}"))
                    .ok()
                    .await,
            );
        }
        texts
    };
    let before = read(&node).await;
    node.stop().await;
    let node = Node::start(&folder).await;
    assert_eq!(read(&node).await, before);
    node.stop().await;
}

#[tokio::test]
async fn documents_and_health_are_served() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let api = client.get("/v3/api-docs").ok().await;
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"));
    assert!(api["paths"]["/account/create_account"]["post"].is_object());
    let metadata = client.get("/wow/metadata").ok().await;
    assert_eq!(
        metadata["context"]["name"].as_str().unwrap_or("example"),
        "example"
    );
    assert_eq!(client.get("/swagger-ui/").send().await.status, 200);
    assert_eq!(client.get("/health/live").send().await.status, 200);
    assert_eq!(client.get("/health/ready").send().await.status, 200);
    let id = client.get("/wow/id/global").send().await;
    assert!(id.header("content-type").starts_with("text/plain"));
    assert_eq!(id.text.len(), 36);
    node.stop().await;
}
