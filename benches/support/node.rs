//! Loads of a whole node, and of the floor.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use wow::config::Sources;
use wow::prelude::*;
use wow_kernel::id::AggregateId;

use super::account::{Account, enter};
use super::commits::{PARTITIONS, commit};
use super::floor::Floor;
use super::load::{self, Measured};

/// A node on a new database.
pub(crate) async fn start(url: &str, listens: bool) -> Node {
    let overrides = [
        ("http.bind", "127.0.0.1:0"),
        ("admin.bind", "127.0.0.1:0"),
        ("storage.url", url),
        ("storage.migrate", "true"),
    ];
    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let sources = Sources {
        overrides: overrides.into(),
        ..Sources::default()
    };
    let config = Config::load(&sources).unwrap();
    assert_eq!(config.log.partitions, PARTITIONS);
    let node = NodeBuilder::from_config(config).register::<Account>();
    let node = if listens { node } else { node.without_ports() };
    node.start().await.unwrap()
}

/// Each client appends to accounts of its own.
pub(crate) async fn bare(floor: Arc<Floor>, clients: usize, duration: Duration) -> Measured {
    let ids: Arc<Vec<_>> = Arc::new(
        (0..clients)
            .map(|_| AggregateId::trusted(Uuid::now_v7().to_string()))
            .collect(),
    );
    let appends = Arc::clone(&floor);
    let measured = load::run(clients, duration, move |client, count| {
        let commit = commit(&ids[client], count + 1);
        let floor = Arc::clone(&appends);
        async move {
            floor.append(commit).await;
        }
    })
    .await;
    floor.close().await;
    measured
}

/// The account of a client's next command.
pub(crate) fn account(client: usize, count: u64, accounts: usize) -> String {
    let spread = (client as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ count.wrapping_mul(7919);
    format!("account-{}", spread % accounts as u64)
}

/// Commands from this process, each waiting for a stage.
pub(crate) async fn in_process(
    node: &Node,
    stage: Stage,
    accounts: usize,
    clients: usize,
    duration: Duration,
) -> Measured {
    let handle = node.handle();
    load::run(clients, duration, move |client, count| {
        let handle = handle.clone();
        let id = account(client, count, accounts);
        async move {
            loop {
                match handle.send(enter()).to(&*id).wait(stage).await {
                    Ok(_) => return,
                    // More clients than few lanes queue: as a caller would, after a while.
                    Err(CommandError::Busy { .. }) => {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    })
    .await
}

/// The same over HTTP, each client with a connection that stays.
pub(crate) async fn over_http(
    node: &Node,
    stage: Stage,
    accounts: usize,
    clients: usize,
    duration: Duration,
) -> Measured {
    let base = format!("http://{}", node.addresses().http[0]);
    let client = reqwest::Client::builder()
        .pool_max_idle_per_host(clients)
        .tcp_nodelay(true)
        .no_proxy()
        .build()
        .unwrap();
    let body = bytes::Bytes::from(serde_json::to_vec(&enter()).unwrap());
    load::run(clients, duration, move |number, count| {
        let id = account(number, count, accounts);
        let request = client
            .put(format!("{base}/account/{id}/enter"))
            .header("Content-Type", "application/json")
            .header("Command-Wait-Stage", stage.as_str())
            .body(body.clone());
        async move {
            let response = request.send().await.unwrap();
            assert!(response.status().is_success(), "{response:?}");
            response.bytes().await.unwrap();
        }
    })
    .await
}
