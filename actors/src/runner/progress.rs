//! A runner's checkpoint: how far it has come, and how far storage knows it has (R81).

use std::sync::Arc;
use std::time::Duration;

use wow_kernel::id::Position;
use wow_kernel::ports::Checkpoint;

use crate::shared::Shared;
use crate::tenure::Tenure;

/// Saved at latest after so many entries, …
const ENTRIES: Position = 256;

/// … or so much time.
const AGE: Duration = Duration::from_millis(500);

/// A checkpoint in memory. What it knows beyond the stored one is handled again after a crash,
/// which changes nothing: snapshots and sagas' commands are idempotent.
#[derive(Debug)]
pub(crate) struct Progress {
    shared: Arc<Shared>,
    tenure: Arc<Tenure>,
    checkpoint: Checkpoint,
    saved: Position,
    /// When saving was last tried, …
    tried_at: Duration,
    /// … and whether it failed: then it waits, however much there is to save.
    failed: bool,
}

/// The runner's place was taken by another: it has to stop (R81).
#[derive(Debug)]
pub(crate) struct Superseded;

impl Progress {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        subscription: &str,
        tenure: &Arc<Tenure>,
        stored: Option<Checkpoint>,
    ) -> Self {
        let mut checkpoint = stored.unwrap_or_else(|| Checkpoint {
            subscription: subscription.to_owned(),
            partition: tenure.partition,
            position: 0,
            epoch: tenure.epoch,
            generation: 1,
        });
        // A stored one that is higher comes from leases that are gone: this node holds the newest.
        checkpoint.epoch = checkpoint.epoch.max(tenure.epoch);
        let (saved, tried_at) = (checkpoint.position, shared.clock.monotonic());
        Self {
            shared: Arc::clone(shared),
            tenure: Arc::clone(tenure),
            checkpoint,
            saved,
            tried_at,
            failed: false,
        }
    }

    pub(crate) fn position(&self) -> Position {
        self.checkpoint.position
    }

    /// All up to here is handled.
    pub(crate) fn advance(&mut self, position: Position) {
        self.checkpoint.position = position;
    }

    /// How long until what is not saved is due; none where all is saved.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        if self.saved == self.checkpoint.position {
            return None;
        }
        if self.checkpoint.position - self.saved >= ENTRIES && !self.failed {
            return Some(Duration::ZERO);
        }
        Some((self.tried_at + AGE).saturating_sub(self.shared.clock.monotonic()))
    }

    /// Saves, where it is due.
    pub(crate) async fn save_if_due(&mut self) -> Result<(), Superseded> {
        match self.due_in() {
            Some(Duration::ZERO) => self.save().await,
            _ => Ok(()),
        }
    }

    /// Saves. Storage that is away is no reason to stop: the next save makes up for it.
    pub(crate) async fn save(&mut self) -> Result<(), Superseded> {
        if self.saved == self.checkpoint.position {
            return Ok(());
        }
        self.tried_at = self.shared.clock.monotonic();
        let saved = self.shared.checkpoints.save(self.checkpoint.clone()).await;
        self.failed = saved.is_err();
        match saved {
            Ok(true) => {
                self.saved = self.checkpoint.position;
                Ok(())
            }
            Ok(false) => {
                tracing::warn!(
                    subscription = self.checkpoint.subscription,
                    partition_id = %self.checkpoint.partition,
                    "checkpoint is held by another; this runner stops"
                );
                self.tenure.supersede();
                Err(Superseded)
            }
            Err(error) => {
                tracing::warn!(
                    subscription = self.checkpoint.subscription,
                    partition_id = %self.checkpoint.partition,
                    %error,
                    "checkpoint can't be saved yet"
                );
                Ok(())
            }
        }
    }
}
