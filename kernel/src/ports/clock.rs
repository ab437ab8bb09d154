//! Time, so that tests own it.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::id::EpochMillis;

/// The kernel's only source of time.
pub trait Clock: Send + Sync {
    /// The wall clock, for what people read.
    fn now(&self) -> EpochMillis;

    /// A clock that never steps, for durations and deadlines; its origin is the node's start.
    fn monotonic(&self) -> Duration;

    /// Ends after a duration.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}
