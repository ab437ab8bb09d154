//! Work that an actor has under way beside its messages.
//!
//! Each piece is a task of its own: an actor's context polls everything that it holds whenever it
//! is woken, so that a thousand waiting there would make each message a thousand times dearer.

use std::sync::Arc;
use std::task;

use parking_lot::Mutex;
use tokio::task::JoinSet;

/// The tasks of one actor; they end with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// Runs work as far as it goes at once, and what is left as a task on this thread.
    pub(crate) fn run(&self, work: impl Future<Output = ()> + 'static) {
        let mut work = Box::pin(work);
        // Most of it waits for nothing and is done here.
        let mut unscheduled = task::Context::from_waker(task::Waker::noop());
        if work.as_mut().poll(&mut unscheduled).is_pending() {
            let mut tasks = self.0.lock();
            while tasks.try_join_next().is_some() {}
            tasks.spawn_local(work);
        }
    }
}
