//! Notices that an actor has ended without which the node is not whole.
//!
//! Users' code runs where its panics are caught, so such an end is a fault of the system's own, or
//! another node has taken its place. What it would have run is refused from then on, and the node
//! says that it is not ready: whoever watches it starts it anew, and nothing acknowledged is lost
//! by that.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::shared::{Phase, Shared};
use crate::tenure::Tenure;

/// Held by an actor for as long as it lives.
#[derive(Debug)]
pub(crate) struct Vital {
    shared: Arc<Shared>,
    /// Of a runner: with it, its end is in order.
    tenure: Option<Arc<Tenure>>,
    what: &'static str,
}

impl Vital {
    pub(crate) fn of(shared: &Arc<Shared>, what: &'static str) -> Self {
        Self {
            shared: Arc::clone(shared),
            tenure: None,
            what,
        }
    }

    /// Of a runner, which may end when its partition is given up.
    pub(crate) fn of_runner(
        shared: &Arc<Shared>,
        tenure: &Arc<Tenure>,
        what: &'static str,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            tenure: Some(Arc::clone(tenure)),
            what,
        }
    }

    fn may_end(&self) -> bool {
        self.shared.is_in_phase(Phase::Draining)
            || self.tenure.as_ref().is_some_and(|tenure| {
                tenure.is_in_phase(Phase::Draining) || tenure.will_begin_anew()
            })
    }
}

impl Drop for Vital {
    fn drop(&mut self) {
        if !self.may_end() {
            tracing::error!(
                what = self.what,
                "an actor has ended; the node is not ready"
            );
            self.shared.ready.store(false, Ordering::Release);
        }
    }
}
