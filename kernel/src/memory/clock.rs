//! Time that a test owns: it stands still until it is told to move.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::id::EpochMillis;
use crate::ports::Clock;

/// Midnight of 1 January 2026, UTC: where a manual clock starts unless told otherwise.
const START: EpochMillis = 1_767_225_600_000;

/// A [`Clock`] that moves only when a test moves it.
///
/// Clones share one time. Sleepers wake in the order of their deadlines.
///
/// ```
/// # use std::time::Duration;
/// use wow_kernel::memory::ManualClock;
/// use wow_kernel::ports::Clock;
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(clock.now() - before, 1000);
/// ```
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    time: Mutex<Time>,
    /// How many are asleep, for tests that wait until somebody is.
    asleep: watch::Sender<usize>,
}

struct Time {
    monotonic: Duration,
    /// What the wall clock shows at the monotonic origin; stepping it moves only the wall.
    wall_origin: EpochMillis,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next_sleeper: u64,
}

impl ManualClock {
    /// A clock at the start of 2026.
    pub fn new() -> Self {
        Self::starting_at(START)
    }

    /// A clock at a time of the wall.
    pub fn starting_at(now: EpochMillis) -> Self {
        let time = Time {
            monotonic: Duration::ZERO,
            wall_origin: now,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
        };
        let shared = Shared {
            time: Mutex::new(time),
            asleep: watch::Sender::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Lets time pass, and wakes everyone whose sleep ends by then, earliest first.
    pub fn advance(&self, duration: Duration) {
        let woken = {
            let mut time = self.shared.time.lock();
            time.monotonic += duration;
            let now = time.monotonic;
            let later = time.sleepers.split_off(&(now, u64::MAX));
            let woken = std::mem::replace(&mut time.sleepers, later);
            self.shared.asleep.send_replace(time.sleepers.len());
            woken
        };
        // Outside the lock: a waker may poll its task at once.
        woken.into_values().for_each(Waker::wake);
    }

    /// Steps the wall clock, as an operator or a time server does; durations don't notice.
    pub fn step_wall(&self, millis: i64) {
        self.shared.time.lock().wall_origin += millis;
    }

    /// When the next sleeper wakes, from now; none when nobody sleeps. A simulator advances by it.
    pub fn next_wake(&self) -> Option<Duration> {
        let time = self.shared.time.lock();
        time.sleepers
            .keys()
            .next()
            .map(|(deadline, _)| deadline.saturating_sub(time.monotonic))
    }

    /// Waits until at least so many are asleep, so that a test can advance without a race.
    pub async fn until_asleep(&self, count: usize) {
        let mut asleep = self.shared.asleep.subscribe();
        // The sender lives in `self`, so the channel can't close meanwhile.
        let _ = asleep.wait_for(|sleepers| *sleepers >= count).await;
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> EpochMillis {
        let time = self.shared.time.lock();
        let passed = EpochMillis::try_from(time.monotonic.as_millis()).unwrap_or(EpochMillis::MAX);
        time.wall_origin.saturating_add(passed)
    }

    fn monotonic(&self) -> Duration {
        self.shared.time.lock().monotonic
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let deadline = self.monotonic().saturating_add(duration);
        Box::pin(Sleep {
            shared: self.shared.clone(),
            deadline,
            place: None,
        })
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.shared.time.lock();
        f.debug_struct("ManualClock")
            .field("monotonic", &time.monotonic)
            .field("asleep", &time.sleepers.len())
            .finish_non_exhaustive()
    }
}

/// A sleep on a [`ManualClock`]. One that is dropped leaves nothing behind.
struct Sleep {
    shared: Arc<Shared>,
    deadline: Duration,
    place: Option<(Duration, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        let mut time = shared.time.lock();
        if time.monotonic >= self.deadline {
            return Poll::Ready(());
        }
        let place = match self.place {
            Some(place) => place,
            None => {
                time.next_sleeper += 1;
                (self.deadline, time.next_sleeper)
            }
        };
        self.place = Some(place);
        time.sleepers.insert(place, context.waker().clone());
        shared.asleep.send_replace(time.sleepers.len());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut time = self.shared.time.lock();
        if time.sleepers.remove(&place).is_some() {
            self.shared.asleep.send_replace(time.sleepers.len());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_its_time_has_come_and_not_before() {
        let clock = ManualClock::new();
        let sleeper = tokio::spawn(clock.sleep(Duration::from_secs(2)));
        clock.until_asleep(1).await;

        clock.advance(Duration::from_millis(1999));
        assert_eq!(clock.next_wake(), Some(Duration::from_millis(1)));
        assert!(!sleeper.is_finished());

        clock.advance(Duration::from_millis(1));
        sleeper.await.unwrap();
        assert_eq!(clock.next_wake(), None);
    }

    #[tokio::test]
    async fn a_sleep_of_nothing_ends_at_once() {
        assert!(
            ManualClock::new()
                .sleep(Duration::ZERO)
                .now_or_never()
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_sleep_that_is_dropped_leaves_nothing_behind() {
        let clock = ManualClock::new();
        assert!(clock.sleep(Duration::from_secs(1)).now_or_never().is_none());
        assert_eq!(clock.next_wake(), None);
    }

    #[test]
    fn stepping_the_wall_moves_no_duration() {
        let clock = ManualClock::starting_at(1_000);
        clock.advance(Duration::from_millis(5));
        clock.step_wall(-300);
        assert_eq!(
            (clock.now(), clock.monotonic()),
            (705, Duration::from_millis(5))
        );
    }
}
