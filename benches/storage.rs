//! The log writer on SQLite against its floor, in one run on one machine.
//!
//! The ratio says what everything beyond a bare batching writer costs: outcomes told apart,
//! conflicts that fail nobody else, snapshots and checkpoints in the same transaction.
//!
//! `cargo bench --bench storage` prints both; `WOW_BENCH_SECONDS` sets how long each run takes.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(
    clippy::unwrap_used,
    reason = "a bench that can't go on should say where"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::runtime::{Handle, Runtime};
use uuid::Uuid;
use wow::storage::{Durability, Storage, StorageSettings, Unobserved};
use wow_kernel::commit::Commit;
use wow_kernel::id::AggregateId;
use wow_kernel::ports::CommitLog;

use self::support::commits::{PARTITIONS, commit};
use self::support::floor::Floor;

const AGGREGATES: usize = 1024;

/// What is measured.
#[async_trait]
trait Appends: Send + Sync {
    async fn append(&self, commit: Arc<Commit>);
    async fn close(&self);
}

#[async_trait]
impl Appends for Storage {
    async fn append(&self, commit: Arc<Commit>) {
        CommitLog::append(self, commit).await.unwrap();
    }

    async fn close(&self) {
        Storage::close(self).await;
    }
}

#[async_trait]
impl Appends for Floor {
    async fn append(&self, commit: Arc<Commit>) {
        Floor::append(self, commit).await;
    }

    async fn close(&self) {
        Floor::close(self).await;
    }
}

fn main() {
    let seconds = std::env::var("WOW_BENCH_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let duration = Duration::from_secs(seconds.unwrap_or(4));
    let runtime = Runtime::new().unwrap();
    println!("appends a second on SQLite, one event each; median of five runs");
    for durability in [Durability::Full, Durability::Normal] {
        for appenders in [64, 1024] {
            let (mut floors, mut ours) = (Vec::new(), Vec::new());
            // In turns, so that what else goes on on the machine meets both.
            for _ in 0..5 {
                floors.push(runtime.block_on(run_floor(durability, appenders, duration)));
                ours.push(runtime.block_on(run_log(durability, appenders, duration)));
            }
            let (floor, ours) = (median(floors), median(ours));
            println!(
                "{durability:?}, {appenders:>4} appenders: floor {floor:>6.0}, log {ours:>6.0}, \
                 ratio {:.2}",
                ours / floor
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn run_floor(durability: Durability, appenders: usize, duration: Duration) -> f64 {
    let folder = tempfile::tempdir_in(".").unwrap();
    let floor = Floor::sqlite(&folder.path().join("wow.db"), durability, PARTITIONS).await;
    run(Arc::new(floor), appenders, duration).await
}

async fn run_log(durability: Durability, appenders: usize, duration: Duration) -> f64 {
    let folder = tempfile::tempdir_in(".").unwrap();
    let storage = Storage::open(
        settings(folder.path(), durability),
        Handle::current(),
        Arc::new(Unobserved),
    );
    run(Arc::new(storage.await.unwrap()), appenders, duration).await
}

fn settings(folder: &Path, durability: Durability) -> StorageSettings {
    let url = format!("sqlite://{}", folder.join("wow.db").display());
    StorageSettings {
        partitions: PARTITIONS,
        durability,
        ..StorageSettings::new(url, "bench")
    }
}

/// Each appender has aggregates of its own, and waits for each append: a lane does no other.
async fn run(appends: Arc<dyn Appends>, appenders: usize, duration: Duration) -> f64 {
    let done = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let tasks: Vec<_> = (0..appenders)
        .map(|appender| {
            let (appends, done) = (appends.clone(), done.clone());
            tokio::spawn(async move {
                let mut accounts: Vec<_> = (appender..AGGREGATES)
                    .step_by(appenders)
                    .map(|_| (AggregateId::trusted(Uuid::now_v7().to_string()), 0))
                    .collect();
                let mut next = 0;
                while started.elapsed() < duration {
                    let (id, version) = &mut accounts[next];
                    *version += 1;
                    appends.append(commit(id, *version)).await;
                    done.fetch_add(1, Ordering::Relaxed);
                    next = (next + 1) % accounts.len();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let elapsed = started.elapsed();
    appends.close().await;
    done.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64()
}
