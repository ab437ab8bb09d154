//! Randomness that a seed decides: the same seed and the same calls give the same ids.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use crate::ports::{Clock, Random};

/// The golden ratio in 64 bits: the step of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A [`Random`] of SplitMix64, for tests and the simulator. It is no secret: whoever knows the
/// seed knows every id.
pub struct SeededRandom {
    state: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl SeededRandom {
    /// Randomness from a seed; the clock gives its UUIDs their time.
    pub fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            state: AtomicU64::new(seed),
            clock,
        }
    }
}

impl Random for SeededRandom {
    fn uuid(&self) -> Uuid {
        let millis = u64::try_from(self.clock.now()).unwrap_or(0);
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.bits().to_le_bytes());
        bytes[8..].copy_from_slice(&self.bits().to_le_bytes()[..2]);
        uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
    }

    fn bits(&self) -> u64 {
        let state = self
            .state
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        mix(state)
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl fmt::Debug for SeededRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeededRandom")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use super::*;
    use crate::memory::ManualClock;

    fn seeded(seed: u64) -> SeededRandom {
        SeededRandom::new(seed, Arc::new(ManualClock::new()))
    }

    #[test]
    fn a_seed_decides_every_id() {
        let (one, same, other) = (seeded(7), seeded(7), seeded(8));
        let ids: Vec<_> = (0..100).map(|_| one.uuid()).collect();
        assert!(ids.iter().all(|id| *id == same.uuid()));
        assert!(ids.iter().all(|id| *id != other.uuid()));
    }

    #[test]
    fn splitmix_gives_its_published_numbers() {
        // The first outputs for seed 1234567 of the reference implementation.
        let random = seeded(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.bits(), random.bits()], expected);
    }

    #[test]
    fn a_uuid_carries_the_clocks_time() {
        let clock = Arc::new(ManualClock::new());
        let random = SeededRandom::new(1, clock.clone());
        let id = random.uuid();
        let (seconds, nanos) = id.get_timestamp().unwrap().to_unix();
        let millis = i64::try_from(seconds * 1000).unwrap() + i64::from(nanos / 1_000_000);
        assert_eq!((id.get_version_num(), millis), (7, clock.now()));
    }
}
