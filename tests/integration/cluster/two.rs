//! Two nodes, seen closely.

use serde_json::json;

use super::nodes::{Place, metric, ready};
use crate::storage::databases::Database;
use crate::support::Node;
use crate::support::wait::until;

const PARTITIONS: f64 = 64.0;

pub(super) async fn settled(nodes: &[&Node]) {
    until("the partitions are shared", async || {
        let mut run = 0.0;
        for node in nodes {
            let own = metric(node, "wow_partitions_run ").await;
            if own == 0.0 {
                return None;
            }
            run += own;
        }
        (run == PARTITIONS).then_some(())
    })
    .await;
    for node in nodes {
        ready(node).await;
    }
}

async fn deposit_to_both_and_read(one: &Node, two: &Node) {
    for account in 0..8 {
        let id = format!("account-{account}");
        one.client().create_account(&id, 100).await;
        // The other node reads it at once: SNAPSHOT is the default, wherever it ran.
        assert_eq!(
            two.client().state(&format!("/account/{id}")).await["balanceAmount"],
            100
        );
    }
    let transfer = json!({"to": "account-1", "amount": 10});
    for node in [one, two] {
        let request = node.client().post("/account/account-0/prepare", &transfer);
        request
            .header("Command-Wait-Stage", "SAGA_HANDLED")
            .ok()
            .await;
    }
    until("the money has arrived", async || {
        let arrived = one.client().state("/account/account-1").await;
        (arrived["balanceAmount"] == 120).then_some(())
    })
    .await;
    // A duplicate is told from a new request on another node than the first.
    let body = json!({"name": "twice", "balance": 1});
    let mut answers = Vec::new();
    for node in [one, two] {
        let request = node.client().post("/account/create_account", &body);
        let request = request.header("Command-Request-Id", "once");
        answers.push(request.ok().await);
    }
    assert_eq!(answers[0]["aggregateId"], answers[1]["aggregateId"]);
    assert_eq!(answers[1]["duplicate"], true);
}

#[tokio::test]
async fn r20_two_nodes_share_the_partitions_and_forward_to_the_owner() {
    let database = Database::postgres().await;
    let places = ["n-1", "n-2"].map(|name| Place::new(name, &database, true));
    let (one, two) = (places[0].start().await, places[1].start().await);
    settled(&[&one, &two]).await;
    deposit_to_both_and_read(&one, &two).await;
    let (mut forwards, mut fallbacks) = (0.0, 0.0);
    for node in [&one, &two] {
        forwards += metric(node, "wow_forwards_total{outcome=\"answered\"}").await;
        fallbacks += metric(node, "wow_local_fallbacks_total").await;
    }
    // One may know the other's newest partitions a moment later.
    assert!(
        forwards > fallbacks,
        "{forwards} forwards, {fallbacks} fallbacks"
    );
    // One leaves in order: the other has all of it, without waiting for a lease to run out.
    one.stop().await;
    settled(&[&two]).await;
    two.client().create_account("after", 1).await;
    two.stop().await;
    places[0].verify().await;
}

#[tokio::test]
async fn r72_without_a_channel_each_node_runs_what_it_is_sent_and_sagas_run_once() {
    let database = Database::postgres().await;
    let places = ["n-1", "n-2"].map(|name| Place::new(name, &database, false));
    let (one, two) = (places[0].start().await, places[1].start().await);
    settled(&[&one, &two]).await;
    deposit_to_both_and_read(&one, &two).await;
    for node in [&one, &two] {
        assert_eq!(metric(node, "wow_forwards_total").await, 0.0);
    }
    two.stop().await;
    one.stop().await;
    places[0].verify().await;
}
