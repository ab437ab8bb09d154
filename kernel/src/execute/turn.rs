//! Running user code: its panics become errors, its long turns are told (R30, R32, R35).

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};

use crate::ports::Clock;
use crate::registry::DecideOutcome;

/// A turn longer than this is told (R30).
const SLOW_TURN: Duration = Duration::from_millis(100);

/// How running a command function ended.
pub(super) enum Turn {
    /// It came to an end.
    Done(DecideOutcome),
    /// It panicked.
    Panicked,
    /// It took longer than it may.
    TimedOut,
}

/// A future that measures each of its turns.
struct Measured<'a> {
    inner: BoxFuture<'static, DecideOutcome>,
    clock: &'a dyn Clock,
    longest: &'a mut Duration,
}

impl Future for Measured<'_> {
    type Output = DecideOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<DecideOutcome> {
        let started = self.clock.monotonic();
        let polled = self.inner.poll_unpin(context);
        let took = self.clock.monotonic().saturating_sub(started);
        *self.longest = (*self.longest).max(took);
        polled
    }
}

/// Runs a command function to its end, its panic, or its deadline. Answers with the longest turn
/// too, where that was slow.
pub(super) async fn run(
    decide: BoxFuture<'static, DecideOutcome>,
    clock: &dyn Clock,
    timeout: Duration,
) -> (Turn, Option<Duration>) {
    let mut longest = Duration::ZERO;
    let measured = Measured {
        inner: decide,
        clock,
        longest: &mut longest,
    };
    let mut caught = AssertUnwindSafe(measured).catch_unwind();
    // Most functions are ready at once: only one that waits pays for a timer.
    let turn = match futures_util::poll!(&mut caught) {
        Poll::Ready(outcome) => outcome.map_or(Turn::Panicked, Turn::Done),
        Poll::Pending => match select(caught, clock.sleep(timeout)).await {
            Either::Left((outcome, _)) => outcome.map_or(Turn::Panicked, Turn::Done),
            Either::Right(((), abandoned)) => {
                drop(abandoned);
                Turn::TimedOut
            }
        },
    };
    (turn, Some(longest).filter(|longest| *longest >= SLOW_TURN))
}
