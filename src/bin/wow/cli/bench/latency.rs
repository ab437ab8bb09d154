//! Latencies, counted in buckets: exact to 1 in 64 of their size, and of bounded memory however
//! long a run takes.

use std::time::Duration;

/// Buckets for each doubling.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Counted latencies.
#[derive(Debug, Default, Clone)]
pub(super) struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    max: Duration,
}

impl Latencies {
    pub(super) fn record(&mut self, latency: Duration) {
        let index = index(nanos(latency));
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        self.buckets[index] += 1;
        self.count += 1;
        self.max = self.max.max(latency);
    }

    /// Adds another client's.
    pub(super) fn add(&mut self, other: &Self) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (own, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += others;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn max(&self) -> Duration {
        self.max
    }

    /// The latency that so many of a hundred didn't exceed; zero where there are none.
    pub(super) fn percentile(&self, percent: u64) -> Duration {
        let wanted = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper(index as u64)).min(self.max);
            }
        }
        self.max
    }
}

fn nanos(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
}

/// The bucket of a value: below [`STEPS`] its own, above by its leading bits.
fn index(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let index = u64::from(shift) * STEPS + (value >> shift);
    usize::try_from(index).expect("there are few thousand buckets")
}

/// The largest value of a bucket.
fn upper(index: u64) -> u64 {
    let shift = (index / STEPS).saturating_sub(1);
    let leading = index - shift * STEPS;
    (leading << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_and_is_no_wider_than_a_64th() {
        let mut before = 0;
        for value in (0..10_000).chain((13..63).flat_map(|bits| {
            let power = 1_u64 << bits;
            [power - 1, power, power + 1, power + power / 3]
        })) {
            let bucket = index(value);
            assert!(bucket >= before, "{value}");
            let upper = upper(bucket as u64);
            assert!(
                upper >= value && upper - value <= value / STEPS,
                "{value}: {upper}"
            );
            before = if value < 9_999 { bucket } else { 0 };
        }
    }

    #[test]
    fn percentiles_are_those_of_all_clients_together() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        assert_eq!(one.percentile(50), Duration::ZERO);
        for micros in 1..=50 {
            one.record(Duration::from_micros(micros));
            other.record(Duration::from_micros(micros + 50));
        }
        one.add(&other);
        assert_eq!((one.count(), one.max()), (100, Duration::from_micros(100)));
        for (percent, micros) in [(1, 1.0), (50, 50.0), (99, 99.0), (100, 100.0)] {
            let found = one.percentile(percent).as_secs_f64() * 1e6;
            assert!(
                (found / micros - 1.0).abs() < 1.0 / 60.0,
                "{percent}: {found}"
            );
        }
    }
}
