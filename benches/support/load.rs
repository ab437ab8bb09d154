//! Closed loops: each client has one request under way, and sends the next when it is answered.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a load came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    /// Answers a second.
    pub(crate) rate: f64,
    /// Latencies, in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Measured {
    /// The run in the middle, by its rate: what else goes on on the machine meets some runs.
    pub(crate) fn median(mut runs: Vec<Self>) -> Self {
        runs.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        runs[runs.len() / 2]
    }
}

/// Runs so many clients for a time; `ask(client, count)` sends a client's next request.
pub(crate) async fn run<F, R>(clients: usize, duration: Duration, ask: F) -> Measured
where
    F: Fn(usize, u64) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (ask, stop) = (ask.clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let sent = Instant::now();
                    ask(client, latencies.len() as u64).await;
                    latencies.push(sent.elapsed());
                }
                latencies
            })
        })
        .collect();
    tokio::time::sleep(duration).await;
    stop.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.append(&mut task.await.unwrap());
    }
    let elapsed = started.elapsed();
    latencies.sort_unstable();
    let percentile = |share: usize| {
        let index = (latencies.len() * share / 100).min(latencies.len() - 1);
        latencies[index].as_secs_f64() * 1e3
    };
    Measured {
        rate: latencies.len() as f64 / elapsed.as_secs_f64(),
        p50: percentile(50),
        p99: percentile(99),
    }
}
