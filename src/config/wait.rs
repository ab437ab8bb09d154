//! `[wait]`: callers that wait for a stage (R60 to R66).

use std::time::Duration;

use super::keys::{Section, Visitor};

/// Callers that wait for a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitConfig {
    /// How long a caller waits that doesn't say (R63).
    pub timeout: Duration,
    /// The longest that a caller may ask for.
    pub max_timeout: Duration,
    /// Callers that may wait at one time (R66).
    pub max_waiters: usize,
}

impl Default for WaitConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_timeout: Duration::from_secs(300),
            max_waiters: 100_000,
        }
    }
}

impl Section for WaitConfig {
    const NAME: &'static str = "wait";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let range = Duration::from_millis(1)..=Duration::from_secs(3600);
        keys.within("timeout", &mut self.timeout, range.clone());
        keys.within("max-timeout", &mut self.max_timeout, range);
        keys.within("max-waiters", &mut self.max_waiters, 1..=10_000_000);
    }
}
