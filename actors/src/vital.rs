//! Notices that an actor has ended without which the node is not whole.
//!
//! Users' code runs where its panics are caught, so such an end is a fault of the system's own, or
//! another node has taken its place. What it would have run is refused from then on, and the node
//! says that it is not ready: whoever watches it starts it anew, and nothing acknowledged is lost
//! by that.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::shared::{Phase, Shared};

/// Held by an actor for as long as it lives.
#[derive(Debug)]
pub(crate) struct Vital {
    shared: Arc<Shared>,
    what: &'static str,
}

impl Vital {
    pub(crate) fn of(shared: &Arc<Shared>, what: &'static str) -> Self {
        Self {
            shared: Arc::clone(shared),
            what,
        }
    }
}

impl Drop for Vital {
    fn drop(&mut self) {
        if !self.shared.is_in_phase(Phase::Draining) {
            tracing::error!(
                what = self.what,
                "an actor has ended; the node is not ready"
            );
            self.shared.ready.store(false, Ordering::Release);
        }
    }
}
