//! `[subscriptions]`: what follows the log (R80).

use std::time::Duration;

use super::keys::{Section, Visitor};

/// What follows the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionsConfig {
    /// How often the heads of the owned partitions are read, for commits made elsewhere (R80).
    pub poll: Duration,
}

impl Default for SubscriptionsConfig {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(250),
        }
    }
}

impl Section for SubscriptionsConfig {
    const NAME: &'static str = "subscriptions";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let poll = Duration::from_millis(10)..=Duration::from_secs(60);
        keys.within("poll", &mut self.poll, poll);
    }
}
