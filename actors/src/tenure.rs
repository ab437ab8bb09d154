//! A tenure: one ownership of a partition, from the moment it is taken until it is given up.
//!
//! What runs only on a partition's owner, its subscriptions, runs for a tenure and ends with it.
//! A node whose storage is its own has one tenure of every partition, which ends with the system.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::{Actor, ArbiterHandle};
use tokio::sync::watch;
use wow_kernel::id::PartitionNo;
use wow_kernel::ports::{Checkpoint, StorageError};

use crate::runner::{Runners, SNAPSHOT_SUBSCRIPTION, SagaRunner, SnapshotRunner};
use crate::shared::{Phase, Shared};

/// The epoch of a node whose storage is its own: nobody else can hold the partition.
pub(crate) const SOLE_EPOCH: u64 = 1;

/// One ownership of a partition.
#[derive(Debug)]
pub(crate) struct Tenure {
    pub(crate) partition: PartitionNo,
    /// Raised with every take; checkpoints carry it (R81).
    pub(crate) epoch: u64,
    shared: Arc<Shared>,
    /// How far giving it up has come; the system's own phase counts too.
    phase: watch::Sender<Phase>,
    /// Its runners that have not ended.
    pub(crate) runners: Arc<Runners>,
    /// A runner's checkpoint is held by a later epoch or generation.
    superseded: AtomicBool,
}

impl Tenure {
    pub(crate) fn new(shared: &Arc<Shared>, partition: PartitionNo, epoch: u64) -> Arc<Self> {
        Arc::new(Self {
            partition,
            epoch,
            shared: Arc::clone(shared),
            phase: watch::Sender::new(Phase::Running),
            runners: Arc::default(),
            superseded: AtomicBool::new(false),
        })
    }

    /// Ends once it, or the whole system, is at least in this phase.
    pub(crate) async fn in_phase(&self, phase: Phase) {
        let mut own = self.phase.subscribe();
        tokio::select! {
            // The sender lives in this very struct.
            _ = own.wait_for(|now| *now >= phase) => {}
            () = self.shared.in_phase(phase) => {}
        }
    }

    pub(crate) fn is_in_phase(&self, phase: Phase) -> bool {
        *self.phase.borrow() >= phase || self.shared.is_in_phase(phase)
    }

    /// Its runners finish what is committed, save their checkpoints and end (R73).
    pub(crate) fn give_up(&self) {
        self.phase.send_replace(Phase::Stopping);
    }

    /// It is another's already: its runners end where they stand (R74).
    pub(crate) fn end(&self) {
        self.phase.send_replace(Phase::Ended);
    }

    /// Whether a runner that ended will be started again, for membership repairs what differs.
    pub(crate) fn will_begin_anew(&self) -> bool {
        self.is_superseded() && self.shared.has_membership
    }

    /// A runner has found its place taken.
    pub(crate) fn supersede(&self) {
        self.superseded.store(true, Ordering::Release);
    }

    /// Whether a runner has found its place taken: it has to begin anew, if this node is still
    /// the owner.
    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }
}

/// Starts the subscriptions of tenures, each from its checkpoint, each on the arbiter of its
/// partition.
///
/// # Errors
/// When checkpoints can't be read; then none was started.
pub(crate) async fn start_runners(
    shared: &Arc<Shared>,
    tenures: &[Arc<Tenure>],
    arbiters: &[ArbiterHandle],
) -> Result<(), StorageError> {
    let partitions: Vec<_> = tenures.iter().map(|tenure| tenure.partition).collect();
    let snapshots = load(shared, SNAPSHOT_SUBSCRIPTION, &partitions).await?;
    let mut sagas = Vec::new();
    for saga in shared.registry.sagas() {
        sagas.push((saga, load(shared, saga.name, &partitions).await?));
    }
    for tenure in tenures {
        let arbiter = &arbiters[tenure.partition.0 as usize % arbiters.len()];
        let stored = snapshots.get(&tenure.partition).cloned();
        let runner = SnapshotRunner::new(shared, tenure, stored);
        SnapshotRunner::start_in_arbiter(arbiter, move |_| runner);
        for (saga, stored) in &sagas {
            let stored = stored.get(&tenure.partition).cloned();
            let runner = SagaRunner::new(shared, saga, tenure, stored);
            SagaRunner::start_in_arbiter(arbiter, move |_| runner);
        }
    }
    Ok(())
}

async fn load(
    shared: &Shared,
    subscription: &str,
    partitions: &[PartitionNo],
) -> Result<HashMap<PartitionNo, Checkpoint>, StorageError> {
    let stored = shared.checkpoints.load(subscription, partitions).await?;
    Ok(stored
        .into_iter()
        .map(|checkpoint| (checkpoint.partition, checkpoint))
        .collect())
}
