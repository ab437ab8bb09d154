//! What live aggregates take in memory (R33). In a process of its own: it measures the process.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests"
)]

#[path = "../../benches/support/counter.rs"]
mod counter;

use counter::{Add, Counter, system};
use futures_util::{StreamExt, stream};
use wow_actors::{Handle, Limits, Placement};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

/// The node's own allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AGGREGATES: u64 = 100_000;

/// What this process holds in memory.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

async fn touch_all(handle: &Handle) {
    let answers = stream::iter(0..AGGREGATES).map(|n| {
        let add = Submission::typed(Add { by: 1 }).aggregate_id(format!("aggregate-{n}"));
        handle.submit(add.wait(Stage::Processed))
    });
    let mut answers = answers.buffer_unordered(256);
    while let Some(answer) = answers.next().await {
        assert!(answer.unwrap().succeeded());
    }
}

/// What a node takes that has touched every aggregate and keeps so many of them live. It is kept,
/// so that nothing of one measurement is used for the next.
async fn taken_by(live_aggregates: usize) -> (u64, impl Sized) {
    let limits = Limits {
        live_aggregates,
        ..Limits::default()
    };
    let before = resident_bytes();
    let node = system::<Counter>(Placement::Arbiters(1), limits).await;
    touch_all(&node.handle()).await;
    (resident_bytes() - before, node)
}

#[tokio::test]
async fn r33_an_idle_lane_takes_at_most_4_kib_and_100_000_aggregates_less_than_600_mib() {
    // What the log, the snapshots and everything else take, without the lanes.
    let (without, _few) = taken_by(64).await;
    let (with, all) = taken_by(usize::try_from(AGGREGATES).unwrap()).await;
    let each = with.saturating_sub(without) / AGGREGATES;
    println!("{each} bytes a lane, {with} bytes in all, of which {without} without the lanes");
    assert!(each <= 4096, "{each} bytes for each lane");
    assert!(with < 600 * 1024 * 1024, "{with} bytes in all");
    drop(all);
}
