//! The node's bounds as permits: taken before a message is sent, or the caller is told at once.
//!
//! A mailbox is no bound (it takes a message from every fresh clone of its address), so nothing
//! here relies on one (R31).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wow_kernel::submission::PermitClass;

/// A bounded count that many threads take from.
#[derive(Debug, Clone)]
pub(crate) struct Permits {
    taken: Arc<AtomicUsize>,
    total: usize,
    /// What is kept for sagas and forwarded commands.
    reserve: usize,
}

/// One of them, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    taken: Arc<AtomicUsize>,
}

impl Permits {
    /// Permits of which all but one in sixteen are for callers (R31).
    pub(crate) fn with_reserve(total: usize) -> Self {
        Self {
            taken: Arc::default(),
            total,
            reserve: total / 16,
        }
    }

    /// Permits that are for everyone.
    pub(crate) fn new(total: usize) -> Self {
        Self {
            taken: Arc::default(),
            total,
            reserve: 0,
        }
    }

    /// Takes one, or none when there is none for this class.
    pub(crate) fn try_acquire(&self, class: PermitClass) -> Option<Permit> {
        let bound = match class {
            PermitClass::Caller => self.total - self.reserve,
            PermitClass::Internal => self.total,
        };
        // Take first and back out: checking first would let two threads both see the last one.
        let permit = Permit {
            taken: Arc::clone(&self.taken),
        };
        let before = self.taken.fetch_add(1, Ordering::SeqCst);
        (before < bound).then_some(permit)
    }

    /// How many are taken. In one order with taking them, for whoever waits until none is.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r31_the_last_permits_are_kept_for_sagas_and_forwards() {
        let permits = Permits::with_reserve(16);
        let held: Vec<_> = (0..15)
            .map(|_| permits.try_acquire(PermitClass::Caller))
            .collect();
        assert!(held.iter().all(Option::is_some));
        assert!(permits.try_acquire(PermitClass::Caller).is_none());
        let last = permits.try_acquire(PermitClass::Internal);
        assert!(last.is_some());
        assert!(permits.try_acquire(PermitClass::Internal).is_none());
        drop((held, last));
        assert_eq!(permits.taken(), 0);
    }
}
