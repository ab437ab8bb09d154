//! The nodes of one service.

use std::process::Output;

use crate::storage::databases::Database;
use crate::support::wait::until;
use crate::support::{Folder, Node};

/// Short, so that a dead node's partitions are taken soon.
const LEASE_TTL: &str = "membership.lease-ttl=2s";

/// One node's place: its name, its folder, and what it is started with.
pub(super) struct Place {
    folder: Folder,
    settings: Vec<String>,
}

impl Place {
    /// A node on a database of its service, with the channel or without.
    pub(super) fn new(name: &str, database: &Database, channel: bool) -> Self {
        let folder = Folder::new();
        let mut settings = vec![
            format!("storage.url={}", database.url()),
            "storage.migrate=true".to_owned(),
            format!("node.name={name}"),
            LEASE_TTL.to_owned(),
            "runtime.drain-delay=0s".to_owned(),
        ];
        if channel {
            let token = folder.path("token");
            std::fs::write(&token, "shared-by-the-nodes-of-this-test").unwrap();
            settings.push("cluster.enabled=true".to_owned());
            settings.push("cluster.bind=127.0.0.1:0".to_owned());
            settings.push(format!("cluster.token-file={}", token.display()));
        }
        Self { folder, settings }
    }

    /// Starts it, and waits until it listens.
    pub(super) async fn start(&self) -> Node {
        let settings: Vec<_> = self.settings.iter().map(String::as_str).collect();
        Node::start_with(&self.folder, &settings).await
    }

    /// Has the node's own check look at the log.
    pub(super) async fn verify(&self) {
        let output = self.wow(&["log", "verify"]).await;
        assert!(output.status.success(), "{output:?}");
    }

    /// Runs another of the binary's commands with the node's settings.
    pub(super) async fn wow(&self, arguments: &[&str]) -> Output {
        let settings = self.settings.iter();
        let settings = settings.flat_map(|setting| ["--set", setting]);
        let arguments: Vec<_> = arguments.iter().copied().chain(settings).collect();
        self.folder.wow(&arguments).await
    }
}

/// Waits until a node runs what it should own.
pub(super) async fn ready(node: &Node) {
    let admin = node.admin();
    until("a node is ready", async || {
        let answer = admin.get("/health/ready").try_send().await.ok()?;
        (answer.status == 200).then_some(())
    })
    .await;
}

/// A metric's value, summed over the samples whose line begins so.
pub(super) async fn metric(node: &Node, line: &str) -> f64 {
    let text = node.admin().get("/metrics").send().await.text;
    text.lines()
        .filter(|sample| sample.starts_with(line))
        .filter_map(|sample| sample.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}
