//! Stopping in order, being killed, and starting again on the same file.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::database::Database;
use crate::support::exposition::Exposition;
use crate::support::socket::{Socket, status_and_code};
use crate::support::wait::until;
use crate::support::{Client, Folder, Node};

/// Waits until new commands are turned away. Looking at a cart commits nothing.
async fn until_turned_away(client: &Client) {
    until("commands are turned away", async || {
        let view = client.put("/owner/ann/cart/view_cart", &json!({}));
        match view.try_send().await {
            Ok(answer) if answer.status == 200 => None,
            Ok(answer) => {
                assert_eq!(answer.header("Retry-After"), "1");
                answer.refused(503, "wow.node.shutting-down");
                Some(())
            }
            // Its ports are closed already.
            Err(_) => Some(()),
        }
    })
    .await;
}

async fn until_in_flight(node: &Node, commands: f64) {
    let admin = node.admin();
    until("the commands are in flight", async || {
        let page = admin.get("/metrics").send().await.text;
        let page = Exposition::parse(&page).unwrap();
        (page.value("wow_commands_in_flight", &[]) == Some(commands)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn r34_on_sigterm_what_is_in_flight_is_answered_and_what_comes_later_refused() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 100).await;

    // While another process holds the file, the node's writer can't commit.
    let database = Database::open(&folder.database()).await;
    let lock = database.lock_for_writing().await;
    let mut in_flight = JoinSet::new();
    for id in ["bob", "cid"] {
        let client = client.clone();
        in_flight.spawn(async move { client.create_account(id, 1).await });
    }
    until_in_flight(&node, 2.0).await;
    node.terminate().await;
    until_turned_away(&client).await;
    let ready = node.admin().get("/health/ready").send().await;
    assert_eq!(ready.status, 503);
    lock.rollback().await.unwrap();
    for result in in_flight.join_all().await {
        assert_eq!(
            (&result["stage"], &result["aggregateVersion"]),
            (&json!("SNAPSHOT"), &json!(1))
        );
    }
    assert_eq!(node.ended().await.code(), Some(0));

    let node = Node::start(&folder).await;
    for (id, balance) in [("ann", 100), ("bob", 1), ("cid", 1)] {
        let state = node.client().state(&format!("/account/{id}")).await;
        assert_eq!(state["balanceAmount"], balance);
    }
    node.stop().await;
    database.close().await;
}

#[tokio::test]
async fn r34_a_request_whose_body_is_under_way_at_sigterm_is_answered() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let mut socket = Socket::connect(node.address()).await;
    let body = r#"{"name":"ann","balance":1}"#;
    let head = format!(
        "POST /account/create_account HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    socket.send(head.as_bytes()).await;
    // It has read the head once it asks for the body.
    socket.read_until("100 Continue").await;
    node.terminate().await;
    until_turned_away(&node.client()).await;
    socket.send(body.as_bytes()).await;
    let answer = socket.rest().await;
    assert_eq!(
        status_and_code(&answer),
        (503, "wow.node.shutting-down"),
        "{answer}"
    );
    assert_eq!(node.ended().await.code(), Some(0));
}

/// Creates accounts one after the other until the node is gone. What it was told, by request id:
/// the version, or nothing where the answer never came or was a refusal.
async fn create_until_gone(client: Client, worker: usize) -> BTreeMap<String, Option<Value>> {
    let mut told = BTreeMap::new();
    for count in 0.. {
        let request_id = format!("{worker}-{count}");
        let body = json!({"name": "x", "balance": 1});
        let request = client
            .post("/account/create_account", &body)
            .header("Command-Request-Id", &request_id)
            .header("Command-Wait-Stage", "PROCESSED");
        match request.try_send().await {
            Ok(answer) if answer.status == 200 => told.insert(request_id, Some(answer.ok())),
            Ok(answer) => {
                answer.refused(503, "wow.node.shutting-down");
                told.insert(request_id, None)
            }
            Err(_) => {
                told.insert(request_id, None);
                break;
            }
        };
    }
    told
}

async fn create_under_load(
    node: Node,
    end: impl AsyncFnOnce(Node),
) -> BTreeMap<String, Option<Value>> {
    let mut workers = JoinSet::new();
    for worker in 0..8 {
        workers.spawn(create_until_gone(node.client(), worker));
    }
    let admin = node.admin();
    until("the load is under way", async || {
        let page = Exposition::parse(&admin.get("/metrics").send().await.text).unwrap();
        let labels = [("aggregate_type", "account"), ("outcome", "committed")];
        (page.value("wow_commands_total", &labels)? > 50.0).then_some(())
    })
    .await;
    end(node).await;
    workers.join_all().await.into_iter().flatten().collect()
}

#[tokio::test]
async fn r34_under_load_every_request_is_answered_or_leaves_nothing() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let told = create_under_load(node, async |node: Node| node.stop().await).await;
    let database = Database::open(&folder.database()).await;
    let log = database.log().await;
    let committed: BTreeMap<_, _> = log
        .rows
        .iter()
        .map(|row| (row.request_id.as_str(), row.command_id.as_str()))
        .collect();
    let acknowledged: BTreeMap<_, _> = told
        .iter()
        .filter_map(|(id, answer)| Some((id.as_str(), answer.as_ref()?["commandId"].as_str()?)))
        .collect();
    assert_eq!(committed, acknowledged);
    database.close().await;
}

#[tokio::test]
async fn what_was_acknowledged_before_a_sigkill_is_there_after_it() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let told = create_under_load(node, async |node: Node| node.kill().await).await;
    let node = Node::start(&folder).await;
    let client = node.client();
    for (request_id, answer) in told {
        let body = json!({"name": "x", "balance": 1});
        let again = client
            .post("/account/create_account", &body)
            .header("Command-Request-Id", &request_id)
            .ok()
            .await;
        // Only what was answered has to be there; the rest may be, or is made now.
        let Some(first) = answer else { continue };
        assert_eq!(again["duplicate"], true, "{request_id}");
        for key in ["aggregateId", "aggregateVersion", "commandId"] {
            assert_eq!(again[key], first[key], "{request_id}");
        }
    }
    node.stop().await;
}

#[tokio::test]
async fn r80_transfers_that_a_sigkill_cut_short_are_brought_to_their_end() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    for id in 0..8 {
        client.create_account(&format!("a-{id}"), 1000).await;
    }
    let mut transfers = JoinSet::new();
    for count in 0..64 {
        let client = client.clone();
        transfers.spawn(async move {
            let body = json!({"to": format!("a-{}", (count + 1) % 8), "amount": 1});
            let path = format!("/account/a-{}/prepare", count % 8);
            let request = client.post(&path, &body);
            request.header("Command-Wait-Stage", "PROCESSED").ok().await
        });
    }
    transfers.join_all().await;
    node.kill().await;

    let node = Node::start(&folder).await;
    let client = node.client();
    until(
        "all is at rest, and the money is where it was",
        async || {
            let mut balances = Vec::new();
            for id in 0..8 {
                let state = client.state(&format!("/account/a-{id}")).await;
                balances.push((
                    state["balanceAmount"].clone(),
                    state["lockedAmount"].clone(),
                ));
            }
            // Each account has sent to the next as much as it got from the one before.
            balances
                .iter()
                .all(|balance| *balance == (json!(1000), json!(0)))
                .then_some(())
        },
    )
    .await;
    node.stop().await;
}
