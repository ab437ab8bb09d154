//! The kernel's clock and randomness in a running system: tokio's time, which tests can pause,
//! and the operating system's entropy.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use rand::Rng as _;
use tokio::time::Instant;
use uuid::Uuid;
use wow_kernel::id::EpochMillis;
use wow_kernel::ports::{Clock, Random};

/// The node's clock. Durations and sleeps are tokio's, so a paused runtime pauses them.
#[derive(Debug, Clone, Copy)]
pub struct NodeClock {
    started: Instant,
}

impl NodeClock {
    /// A clock whose monotonic time begins now.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Default for NodeClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for NodeClock {
    fn now(&self) -> EpochMillis {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        EpochMillis::try_from(since.as_millis()).unwrap_or(EpochMillis::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The node's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeRandom;

impl Random for NodeRandom {
    fn uuid(&self) -> Uuid {
        // Without the counter that would order the ids of one millisecond: nothing needs that
        // order, and the counter is a lock that every thread takes for every command.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut random = [0; 10];
        rand::rng().fill_bytes(&mut random);
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    fn bits(&self) -> u64 {
        rand::rng().next_u64()
    }
}
