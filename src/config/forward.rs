//! `[forward]`: commands sent on to the node that owns their partition (R21, R22).

use std::time::Duration;

use super::keys::{Section, Visitor};

/// Commands sent on to another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardConfig {
    /// Forwards in flight to one peer (R21).
    pub in_flight: usize,
    /// How long a reply may take; by itself as long as the command's deadline.
    pub timeout: Option<Duration>,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        Self {
            in_flight: 1024,
            timeout: None,
        }
    }
}

impl Section for ForwardConfig {
    const NAME: &'static str = "forward";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let timeout = Duration::from_millis(10)..=Duration::from_secs(3600);
        keys.within("in-flight", &mut self.in_flight, 1..=1_000_000);
        keys.within("timeout", &mut self.timeout, timeout);
    }
}
