//! Running user code: its panics become errors, its long turns are told (R30, R32, R35).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// A command function whose turns are measured, and whose panics are caught.
struct Watched<'a> {
    decide: BoxFuture<'static, DecideOutcome>,
    clock: &'a dyn Clock,
    longest: Duration,
}

impl Future for Watched<'_> {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Turn> {
        let started = self.clock.monotonic();
        let polled = catch_unwind(AssertUnwindSafe(|| self.decide.poll_unpin(context)));
        let took = self.clock.monotonic().saturating_sub(started);
        self.longest = self.longest.max(took);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(outcome)) => Poll::Ready(Turn::Done(outcome)),
            Err(_panic) => Poll::Ready(Turn::Panicked),
        }
    }
}

/// Runs a command function to its end, its panic, or its deadline. Answers with the longest turn
/// too, where that was slow.
pub(super) async fn run(
    decide: BoxFuture<'static, DecideOutcome>,
    clock: &dyn Clock,
    timeout: Duration,
) -> (Turn, Option<Duration>) {
    let mut watched = Watched {
        decide,
        clock,
        longest: Duration::ZERO,
    };
    // Most functions are ready at once: only one that waits pays for a timer.
    let turn = match futures_util::poll!(&mut watched) {
        Poll::Ready(turn) => turn,
        Poll::Pending => {
            let left = timeout.saturating_sub(watched.longest);
            match select(&mut watched, clock.sleep(left)).await {
                Either::Left((turn, _)) => turn,
                Either::Right(((), _)) => Turn::TimedOut,
            }
        }
    };
    let longest = watched.longest;
    // What a function holds while it waits is user code too, and may panic when it goes.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(watched)));
    let turn = dropped.map_or(Turn::Panicked, |()| turn);
    (turn, Some(longest).filter(|longest| *longest >= SLOW_TURN))
}
