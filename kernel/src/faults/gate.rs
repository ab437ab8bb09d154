//! Gates: a test holds one call, looks around, and lets it go on.

use tokio::sync::watch;

/// When a gate holds its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before it does anything.
    Before,
    /// After it did its work, before its caller hears of it.
    After,
}

/// A gate that holds one call. Dropping it releases, so that a test that fails doesn't hang.
///
/// ```
/// # use std::sync::Arc;
/// # use wow_kernel::faults::{Call, Faults, Moment};
/// # use wow_kernel::memory::{ManualClock, MemoryStore};
/// # use wow_kernel::ports::{CommitLog, History};
/// # #[tokio::main]
/// # async fn main() {
/// # let clock = Arc::new(ManualClock::new());
/// # let faults = Faults::new(clock.clone());
/// # let store = faults.wrap(Arc::new(MemoryStore::new(clock)));
/// let gate = faults.hold(Call::Heads, Moment::Before);
/// let reading = tokio::spawn(async move { store.heads(&[]).await });
/// gate.reached().await; // now it is known to wait
/// gate.release();
/// reading.await.unwrap().unwrap();
/// # }
/// ```
#[derive(Debug)]
pub struct Gate {
    reached: watch::Receiver<bool>,
    released: watch::Sender<bool>,
}

/// The side of a gate that the held call has.
#[derive(Debug)]
pub(super) struct Hold {
    moment: Moment,
    reached: watch::Sender<bool>,
    released: watch::Receiver<bool>,
}

pub(super) fn gate(moment: Moment) -> (Gate, Hold) {
    let (reached_sender, reached) = watch::channel(false);
    let (released, released_receiver) = watch::channel(false);
    let hold = Hold {
        moment,
        reached: reached_sender,
        released: released_receiver,
    };
    (Gate { reached, released }, hold)
}

impl Gate {
    /// Waits until a call has come to the gate. It ends too when that call has been given up, or
    /// has gone on.
    pub async fn reached(&self) {
        // An error means that the call is gone, so it had come.
        let _ = self.reached.clone().wait_for(|reached| *reached).await;
    }

    /// Whether a call has come to the gate.
    pub fn is_reached(&self) -> bool {
        *self.reached.borrow()
    }

    /// Lets the call go on, now or when it comes.
    pub fn release(&self) {
        self.released.send_replace(true);
    }
}

impl Hold {
    pub(super) fn moment(&self) -> Moment {
        self.moment
    }

    /// Whether the gate was dropped, so that nothing is left to hold.
    pub(super) fn is_abandoned(&self) -> bool {
        self.released.has_changed().is_err()
    }

    /// Waits until the gate is released or dropped.
    pub(super) async fn pass(mut self) {
        self.reached.send_replace(true);
        // An error means that the gate was dropped, which releases.
        let _ = self.released.wait_for(|released| *released).await;
    }
}
