//! `[runtime]`: lanes, bounds on commands, and how a node stops.

use std::time::Duration;

use super::bytes::ByteSize;
use super::cores;
use super::keys::{Section, Visitor};
use super::setting::Auto;

/// Lanes, bounds on commands, and how a node stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// Threads for supervisors and lanes; by itself one for each core.
    pub arbiters: Auto<usize>,
    /// Commands that may wait for one aggregate (R31).
    pub lane_queue: usize,
    /// Commands in flight on the node (R31).
    pub in_flight: usize,
    /// How long a lane without commands stays (R33).
    pub idle_timeout: Duration,
    /// The most lanes at one time (R33).
    pub max_live_aggregates: usize,
    /// The most that cached states may take (R33).
    pub max_state_bytes: ByteSize,
    /// How long deciding may take (R35).
    pub decide_timeout: Duration,
    /// How often a command that lost against another is decided again (R52).
    pub conflict_retries: u32,
    /// Request ids kept with each cached state (R41).
    pub recent_requests: usize,
    /// How long commands in flight may take to finish at a stop (R34).
    pub shutdown_timeout: Duration,
    /// How long commands are still taken at a stop, so that balancers notice (R34); by itself
    /// 5 s in a cluster, else not at all.
    pub drain_delay: Auto<Duration>,
}

impl RuntimeConfig {
    /// How many threads for supervisors and lanes.
    pub fn arbiter_count(&self) -> usize {
        self.arbiters.unwrap_or_else(cores)
    }
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            arbiters: Auto::Auto,
            lane_queue: 128,
            in_flight: 8192,
            idle_timeout: Duration::from_secs(120),
            max_live_aggregates: 100_000,
            max_state_bytes: ByteSize::mib(512),
            decide_timeout: Duration::from_secs(30),
            conflict_retries: 10,
            recent_requests: 256,
            shutdown_timeout: Duration::from_secs(60),
            drain_delay: Auto::Auto,
        }
    }
}

impl Section for RuntimeConfig {
    const NAME: &'static str = "runtime";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let second = Duration::from_secs(1);
        let state = ByteSize::mib(1)..=ByteSize::gib(1024);
        keys.within("arbiters", &mut self.arbiters, 1..=1024);
        keys.within("lane-queue", &mut self.lane_queue, 1..=65_536);
        // A sixteenth is kept for sagas and forwarded commands: below 16 that would be none.
        keys.within("in-flight", &mut self.in_flight, 16..=1_000_000);
        keys.within(
            "idle-timeout",
            &mut self.idle_timeout,
            second..=second * 86_400,
        );
        keys.within(
            "max-live-aggregates",
            &mut self.max_live_aggregates,
            1..=100_000_000,
        );
        keys.within("max-state-bytes", &mut self.max_state_bytes, state);
        keys.within(
            "decide-timeout",
            &mut self.decide_timeout,
            second / 100..=second * 3600,
        );
        keys.within("conflict-retries", &mut self.conflict_retries, 1..=1000);
        keys.within("recent-requests", &mut self.recent_requests, 1..=65_536);
        keys.within(
            "shutdown-timeout",
            &mut self.shutdown_timeout,
            second..=second * 3600,
        );
        keys.within(
            "drain-delay",
            &mut self.drain_delay,
            Duration::ZERO..=second * 300,
        );
    }
}
