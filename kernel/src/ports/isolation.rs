//! Where a command function runs that blocks its thread (R30).

use futures_util::future::BoxFuture;

use crate::registry::DecideOutcome;

/// Runs blocking command functions away from the lanes' threads, on a bounded pool.
pub trait Isolation: Send + Sync {
    /// Runs a decision to its end elsewhere.
    fn run(&self, decide: BoxFuture<'static, DecideOutcome>) -> BoxFuture<'static, DecideOutcome>;
}

/// Runs them where they are: for tests and the simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct InPlace;

impl Isolation for InPlace {
    fn run(&self, decide: BoxFuture<'static, DecideOutcome>) -> BoxFuture<'static, DecideOutcome> {
        decide
    }
}
