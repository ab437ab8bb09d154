//! A bounded pool for command functions that block their thread (R30).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use wow_kernel::ports::Isolation;
use wow_kernel::registry::{DecideFault, DecideOutcome};

/// Runs blocking command functions on the blocking threads of a runtime, so many at once.
#[derive(Debug, Clone)]
pub struct BlockingPool {
    runtime: Handle,
    places: Arc<Semaphore>,
}

impl BlockingPool {
    /// A pool of this many threads of the runtime.
    pub fn new(runtime: Handle, threads: usize) -> Self {
        Self {
            runtime,
            places: Arc::new(Semaphore::new(threads)),
        }
    }
}

impl Isolation for BlockingPool {
    fn run(&self, decide: BoxFuture<'static, DecideOutcome>) -> BoxFuture<'static, DecideOutcome> {
        let (runtime, places) = (self.runtime.clone(), Arc::clone(&self.places));
        Box::pin(async move {
            // The lane's decide timeout bounds this wait as well.
            let Ok(place) = places.acquire_owned().await else {
                return Err(DecideFault::Ended);
            };
            let on = runtime.clone();
            let running = runtime.spawn_blocking(move || {
                let _place = place;
                on.block_on(decide)
            });
            match running.await {
                Ok(outcome) => outcome,
                // The lane catches it like any panic of a command function.
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_cancelled) => Err(DecideFault::Ended),
            }
        })
    }
}
