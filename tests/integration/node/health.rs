//! Readiness follows what the node stands on (spec/03).

use std::path::PathBuf;

use serde_json::json;

use crate::support::database::Database;
use crate::support::wait::until;
use crate::support::{Answer, Folder, Node};

/// What both ports say of the node.
async fn readiness(node: &Node) -> [Answer; 2] {
    let path = "/health/ready";
    [
        node.client().get(path).send().await,
        node.admin().get(path).send().await,
    ]
}

async fn until_both_say(node: &Node, status: u16, code: &str) {
    let all_say = async || {
        let answers = readiness(node).await;
        let say =
            |answer: &Answer| (answer.status, answer.header("wow-error-code")) == (status, code);
        answers.iter().all(say).then_some(())
    };
    until(&format!("both ports say {status} {code}"), all_say).await;
}

#[tokio::test]
async fn a_node_whose_file_has_vanished_is_not_ready_until_it_is_back() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    until_both_say(&node, 200, "Ok").await;
    let (file, aside): (PathBuf, PathBuf) = (folder.database(), folder.path("aside.db"));
    std::fs::rename(&file, &aside).unwrap();
    until_both_say(&node, 503, "wow.node.not-ready").await;
    assert_eq!(node.client().get("/health/live").send().await.status, 200);
    std::fs::rename(&aside, &file).unwrap();
    until_both_say(&node, 200, "Ok").await;
    node.stop().await;
}

#[tokio::test]
async fn a_node_whose_database_refuses_writes_is_not_ready_until_one_succeeds() {
    let folder = Folder::new();
    let node = Node::start_with(&folder, &["storage.statement-timeout=1s"]).await;
    let database = Database::open(&folder.database()).await;
    let lock = database.lock_for_writing().await;
    let create = || {
        let account = json!({"name": "ann", "balance": 1});
        node.client().post("/account/create_account", &account)
    };
    assert_eq!(create().send().await.status, 503);
    for answer in readiness(&node).await {
        let told = (answer.status, answer.header("wow-error-code"));
        assert_eq!(told, (503, "wow.node.not-ready"));
    }
    lock.rollback().await.unwrap();
    create().ok().await;
    until_both_say(&node, 200, "Ok").await;
    database.close().await;
    node.stop().await;
}
