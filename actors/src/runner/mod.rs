//! Runners: one actor for each subscription and partition, following the log from its checkpoint
//! (R80, R81). The snapshot is one of them (R84), and each saga (R83).

mod follow;
mod heads;
mod progress;
mod saga;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

pub(crate) use heads::HeadPoller;
pub(crate) use saga::SagaRunner;
pub(crate) use snapshot::{SNAPSHOT_SUBSCRIPTION, SnapshotRunner};

/// Counts the runners that have not ended, for an orderly stop.
#[derive(Debug, Default)]
pub(crate) struct Runners {
    alive: AtomicUsize,
    ended: Notify,
}

impl Runners {
    pub(crate) fn enter(self: &Arc<Self>) -> RunnerGuard {
        self.alive.fetch_add(1, Ordering::AcqRel);
        RunnerGuard(Arc::clone(self))
    }

    /// Ends once every runner has.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.alive.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// Held by a runner for as long as it runs.
#[derive(Debug)]
pub(crate) struct RunnerGuard(Arc<Runners>);

impl Drop for RunnerGuard {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}
