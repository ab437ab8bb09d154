//! What is sent, by how many, for how long, and what came of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde::Serialize;
use tokio::task::JoinSet;
use wow::prelude::*;

use super::latency::Latencies;
use super::target::{Ask, Outcome, Target, TargetError};

/// How many carts `hot` goes to.
const HOT_CARTS: u32 = 8;

/// How long a client waits after it was turned away as busy.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Load {
    /// A new account with each command
    Create,
    /// Items into 8 carts
    Hot,
    /// Items into many carts
    Spread,
}

impl Load {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Hot => "hot",
            Self::Spread => "spread",
        }
    }
}

/// One measurement.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) load: Load,
    pub(super) stage: Stage,
    pub(super) clients: u32,
    pub(super) carts: u32,
    pub(super) duration: Duration,
}

/// What came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    pub(super) load: &'static str,
    pub(super) stage: &'static str,
    pub(super) clients: u32,
    pub(super) seconds: f64,
    /// How many were answered.
    pub(super) commands: u64,
    pub(super) commands_per_second: f64,
    /// How many were turned away as busy.
    pub(super) busy: u64,
    pub(super) latency_ms: Percentiles,
}

/// Latencies in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// What one client saw.
#[derive(Debug, Default)]
struct Seen {
    latencies: Latencies,
    busy: u64,
}

impl Plan {
    /// Warms up, then measures.
    ///
    /// # Errors
    /// The first answer that is neither a success nor "busy".
    pub(super) async fn run(&self, target: &Target) -> Result<Measured, TargetError> {
        let numbers = Arc::new(AtomicU64::new(0));
        self.send(target, &numbers, self.duration / 5).await?;
        let begun = Instant::now();
        let seen = self.send(target, &numbers, self.duration).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let latencies = &seen.latencies;
        let millis = |latency: Duration| latency.as_secs_f64() * 1000.0;
        Ok(Measured {
            load: self.load.as_str(),
            stage: self.stage.as_str(),
            clients: self.clients,
            seconds,
            commands: latencies.count(),
            #[allow(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
            commands_per_second: latencies.count() as f64 / seconds,
            busy: seen.busy,
            latency_ms: Percentiles {
                p50: millis(latencies.percentile(50)),
                p90: millis(latencies.percentile(90)),
                p99: millis(latencies.percentile(99)),
                max: millis(latencies.max()),
            },
        })
    }

    async fn send(
        &self,
        target: &Target,
        numbers: &Arc<AtomicU64>,
        duration: Duration,
    ) -> Result<Seen, TargetError> {
        let mut clients = JoinSet::new();
        for _ in 0..self.clients {
            let (plan, target, numbers) = (self.clone(), target.clone(), Arc::clone(numbers));
            clients.spawn(async move { plan.client(&target, &numbers, duration).await });
        }
        let mut all = Seen::default();
        while let Some(client) = clients.join_next().await {
            let seen = client.expect("a client has no reason to panic")?;
            all.latencies.add(&seen.latencies);
            all.busy += seen.busy;
        }
        Ok(all)
    }

    async fn client(
        &self,
        target: &Target,
        numbers: &AtomicU64,
        duration: Duration,
    ) -> Result<Seen, TargetError> {
        let mut seen = Seen::default();
        let end = Instant::now() + duration;
        loop {
            let sent = Instant::now();
            if sent >= end {
                return Ok(seen);
            }
            let ask = self.ask(numbers.fetch_add(1, Ordering::Relaxed));
            match target.send(ask, self.stage).await? {
                Outcome::Done => seen.latencies.record(sent.elapsed()),
                Outcome::Busy => {
                    seen.busy += 1;
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
            }
        }
    }

    /// The command of a number: the carts take turns.
    fn ask(&self, number: u64) -> Ask {
        let carts = match self.load {
            Load::Create => return Ask::Create,
            Load::Hot => HOT_CARTS,
            Load::Spread => self.carts,
        };
        Ask::Add {
            cart: format!("bench-{}", number % u64::from(carts)),
        }
    }
}
