//! What the kernel tells whoever counts.

use std::time::Duration;

/// Hears of what the kernel handled without its caller noticing.
pub trait KernelObserver: Send + Sync {
    /// An append met another commit, and the command is decided again (R52).
    fn append_conflict(&self) {}

    /// An append's outcome was unknown (R54).
    fn outcome_unknown(&self) {}

    /// A snapshot was ignored, for it can't be read here (R50).
    fn snapshot_ignored(&self) {}

    /// One turn of a command function took long enough to hold up other lanes (R30).
    fn slow_turn(&self, _aggregate_type: &str, _command_type: &str, _took: Duration) {}
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl KernelObserver for Unobserved {}
