//! A whole node against a bare batching writer on the same database, in one run on one machine.
//!
//! `cargo bench --bench node` prints, for SQLite, commands a second, latencies and ratios: what
//! a command costs on its way through admission, lane, log and wait, beyond writing its row.
//! `WOW_BENCH_SECONDS` sets how long each run takes, `WOW_BENCH_RUNS` how many runs there are.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that can't go on should say where"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use uuid::Uuid;
use wow::config::Sources;
use wow::prelude::*;
use wow::storage::Durability;
use wow_kernel::id::AggregateId;

use self::support::account::{Account, enter};
use self::support::commits::{PARTITIONS, commit};
use self::support::floor::Floor;
use self::support::load::{self, Measured};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
enum Load {
    /// The floor.
    Bare,
    /// Commands from this process, waiting for a stage, to so many accounts.
    InProcess(Stage, usize),
    /// The same over HTTP, each client with a connection that stays.
    Http(Stage, usize),
}

impl Load {
    fn name(self) -> String {
        match self {
            Self::Bare => "bare batching writer".to_owned(),
            Self::InProcess(stage, accounts) => format!("{stage}, {accounts} accounts"),
            Self::Http(stage, accounts) => format!("{stage}, {accounts} accounts, over HTTP"),
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn main() {
    let duration = Duration::from_secs(number("WOW_BENCH_SECONDS", 4));
    let runs = number("WOW_BENCH_RUNS", 5);
    let runtime = Runtime::new().unwrap();
    println!("commands a second on SQLite FULL; median of {runs} runs of {duration:?}");
    for clients in [64, 1024] {
        let loads = [
            Load::Bare,
            Load::InProcess(Stage::Processed, 1000),
            Load::InProcess(Stage::Processed, 8),
            Load::InProcess(Stage::Snapshot, 1000),
            Load::Http(Stage::Processed, 1000),
        ];
        let mut measured = vec![Vec::new(); loads.len()];
        // In turns, so that what else goes on on the machine meets all of them.
        for _ in 0..runs {
            for (load, measured) in loads.iter().zip(&mut measured) {
                measured.push(runtime.block_on(run(*load, clients, duration)));
            }
        }
        let mut floor = None;
        for (load, measured) in loads.iter().zip(measured) {
            let Measured { rate, p50, p99 } = Measured::median(measured);
            let ratio = rate / *floor.get_or_insert(rate);
            println!(
                "{clients:>5} clients  {:<36} {rate:>7.0}/s  p50 {p50:>6.2} ms  \
                 p99 {p99:>6.2} ms  ratio {ratio:.2}",
                load.name()
            );
        }
    }
}

async fn run(load: Load, clients: usize, duration: Duration) -> Measured {
    let folder = tempfile::tempdir_in(".").unwrap();
    let file = folder.path().join("wow.db");
    match load {
        Load::Bare => {
            let floor = Floor::sqlite(&file, Durability::Full, PARTITIONS).await;
            bare(Arc::new(floor), clients, duration).await
        }
        Load::InProcess(stage, accounts) => {
            let node = node(&format!("sqlite://{}", file.display()), false).await;
            let measured = in_process(&node, stage, accounts, clients, duration).await;
            node.stop().await;
            measured
        }
        Load::Http(stage, accounts) => {
            let node = node(&format!("sqlite://{}", file.display()), true).await;
            let measured = over_http(&node, stage, accounts, clients, duration).await;
            node.stop().await;
            measured
        }
    }
}

async fn node(url: &str, listens: bool) -> Node {
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
async fn bare(floor: Arc<Floor>, clients: usize, duration: Duration) -> Measured {
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
fn account(client: usize, count: u64, accounts: usize) -> String {
    let spread = (client as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ count.wrapping_mul(7919);
    format!("account-{}", spread % accounts as u64)
}

async fn in_process(
    node: &Node,
    stage: Stage,
    accounts: usize,
    clients: usize,
    duration: Duration,
) -> Measured {
    let handle = node.handle();
    load::run(clients, duration, move |client, count| {
        let send = handle
            .send(enter())
            .to(account(client, count, accounts))
            .wait(stage);
        async move {
            send.await.unwrap();
        }
    })
    .await
}

async fn over_http(
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
