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

use crate::shared::Shared;
use crate::tenure::Tenure;

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
    /// Whether every runner has ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.alive.load(Ordering::Acquire) == 0
    }

    /// Ends once every runner has.
    pub(crate) async fn all_ended(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.have_ended() {
                return;
            }
            ended.await;
        }
    }
}

/// Held by a runner for as long as it runs: counted in its tenure, and in the system.
#[derive(Debug)]
pub(crate) struct RunnerGuard([Arc<Runners>; 2]);

impl RunnerGuard {
    pub(crate) fn enter(shared: &Shared, tenure: &Tenure) -> Self {
        let counted = [&tenure.runners, &shared.runners].map(Arc::clone);
        for runners in &counted {
            runners.alive.fetch_add(1, Ordering::AcqRel);
        }
        Self(counted)
    }
}

impl Drop for RunnerGuard {
    fn drop(&mut self) {
        for runners in &self.0 {
            if runners.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
                runners.ended.notify_waiters();
            }
        }
    }
}
