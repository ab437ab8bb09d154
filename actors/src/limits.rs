//! Every bound of the running system, in one struct.

use std::time::Duration;

/// The bounds of the actors. Each has its key in the node's configuration.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Commands waiting in one lane (R31).
    pub lane_queue: usize,
    /// Commands in flight on the node (R31).
    pub in_flight: usize,
    /// Callers waiting for stages after PROCESSED (R66).
    pub waiters: usize,
    /// How long an idle lane stays (R33).
    pub idle_timeout: Duration,
    /// How many aggregates are live at most (R33).
    pub live_aggregates: usize,
    /// How many bytes their states take at most, roughly (R33).
    pub state_bytes: usize,
    /// How long those in flight have to finish when the node stops (R34).
    pub shutdown_timeout: Duration,
    /// How long commands are still taken once readiness is false (R34).
    pub drain_delay: Duration,
    /// How often the heads of the partitions are read (R80).
    pub poll: Duration,
    /// How many blocking command functions run at once (R30).
    pub blocking: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lane_queue: 128,
            in_flight: 8192,
            waiters: 100_000,
            idle_timeout: Duration::from_secs(120),
            live_aggregates: 100_000,
            state_bytes: 512 * 1024 * 1024,
            shutdown_timeout: Duration::from_secs(60),
            drain_delay: Duration::ZERO,
            poll: Duration::from_millis(250),
            blocking: 8,
        }
    }
}
