//! `[membership]`: leases, and handing partitions over (R70 to R73).

use std::time::Duration;

use super::keys::{Section, Visitor};

/// Leases, and handing partitions over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipConfig {
    /// How long a lease is valid without renewal (R70).
    pub lease_ttl: Duration,
    /// How long commands in flight may take to finish when a partition moves (R73).
    pub hand_over_timeout: Duration,
}

impl Default for MembershipConfig {
    fn default() -> Self {
        Self {
            lease_ttl: Duration::from_secs(10),
            hand_over_timeout: Duration::from_secs(30),
        }
    }
}

impl Section for MembershipConfig {
    const NAME: &'static str = "membership";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let seconds = |seconds| Duration::from_secs(seconds);
        keys.within("lease-ttl", &mut self.lease_ttl, seconds(1)..=seconds(300));
        keys.within(
            "hand-over-timeout",
            &mut self.hand_over_timeout,
            seconds(1)..=seconds(3600),
        );
    }
}
