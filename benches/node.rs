//! A whole node against a bare batching writer on the same database, in one run on one machine.
//!
//! `cargo bench --bench node` prints, for SQLite, commands a second, latencies and ratios: what
//! a command costs on its way through admission, lane, log and wait, beyond writing its row.
//! `cargo bench --bench node -- postgres mysql` does so for these; the variables
//! `WOW_TEST_POSTGRES_URL` and `WOW_TEST_MYSQL_URL` name their servers.
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
use wow::prelude::*;

use self::support::commits::PARTITIONS;
use self::support::database::{Engine, Scratch};
use self::support::floor::Floor;
use self::support::load::Measured;
use self::support::node;

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
    for engine in Engine::of_arguments() {
        println!("commands a second on {engine:?}; median of {runs} runs of {duration:?}");
        table(&runtime, engine, runs, duration);
    }
}

fn table(runtime: &Runtime, engine: Engine, runs: u64, duration: Duration) {
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
                measured.push(runtime.block_on(run(engine, *load, clients, duration)));
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

async fn run(engine: Engine, load: Load, clients: usize, duration: Duration) -> Measured {
    let scratch = Scratch::new(engine).await;
    let measured = match load {
        Load::Bare => {
            let floor = Floor::on(engine, &scratch.url, PARTITIONS).await;
            node::bare(Arc::new(floor), clients, duration).await
        }
        Load::InProcess(stage, accounts) => {
            let node = node::start(&scratch.url, false).await;
            let measured = node::in_process(&node, stage, accounts, clients, duration).await;
            node.stop().await;
            measured
        }
        Load::Http(stage, accounts) => {
            let node = node::start(&scratch.url, true).await;
            let measured = node::over_http(&node, stage, accounts, clients, duration).await;
            node.stop().await;
            measured
        }
    };
    scratch.remove().await;
    measured
}
