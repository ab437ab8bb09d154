//! What every actor of one node shares: the kernel, the lanes' directory, the bounds.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};
use wow_kernel::admission::Admission;
use wow_kernel::command::BuiltCommand;
use wow_kernel::commit::Commit;
use wow_kernel::error::CommandError;
use wow_kernel::execute::Kernel;
use wow_kernel::forward::Signal;
use wow_kernel::id::{
    AggregateKey, AggregateType, CommandId, DEFAULT_TENANT, NodeName, PartitionNo,
};
use wow_kernel::partition::{partition_of, partition_of_parts};
use wow_kernel::ports::{CheckpointStore, Clock, PeerChannel, SnapshotStore};
use wow_kernel::registry::Registry;
use wow_kernel::router::RouterKind;
use wow_kernel::submission::Submission;
use wow_kernel::wait::{FunctionInfo, Stage};

use crate::directory::LaneDirectory;
use crate::feed::Feeds;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::permits::Permits;
use crate::routing::Routing;
use crate::runner::Runners;
use crate::waits::{Reached, StageReached};

pub(crate) struct Shared {
    pub(crate) node: NodeName,
    pub(crate) registry: Arc<Registry>,
    pub(crate) admission: Admission,
    pub(crate) kernel: Kernel,
    /// The routers that are not the default (R20).
    pub(crate) routers: HashMap<AggregateType, RouterKind>,
    pub(crate) snapshots: Arc<dyn SnapshotStore>,
    pub(crate) checkpoints: Arc<dyn CheckpointStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) permits: Permits,
    pub(crate) waiters: Permits,
    pub(crate) directory: LaneDirectory,
    pub(crate) feeds: Feeds,
    pub(crate) routing: Routing,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) accepting: AtomicBool,
    /// The last phase, where it is asked for often.
    pub(crate) ended: AtomicBool,
    pub(crate) ready: AtomicBool,
    /// Whether this node runs all that it should own.
    pub(crate) whole: AtomicBool,
    /// Whether partitions are shared with other nodes; without, all of them are this node's.
    pub(crate) has_membership: bool,
    /// The channel to the other members, where there is one.
    pub(crate) peers: Option<Arc<dyn PeerChannel>>,
    /// Partitions may have changed hands: the leases are looked at now (R77).
    pub(crate) look_now: Notify,
    /// How far the stop has come; runners and pollers watch it.
    pub(crate) phase: watch::Sender<Phase>,
    /// The runners that have not ended.
    pub(crate) runners: Arc<Runners>,
    pub(crate) next_admission: AtomicUsize,
}

/// How far the system has come in stopping (R34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It runs.
    Running,
    /// Sagas take no new entries.
    Draining,
    /// Runners write what is committed, save their checkpoints and end.
    Stopping,
    /// Nothing more happens here: whoever still waits is answered with what is known.
    Ended,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn partition_of(&self, key: &AggregateKey) -> PartitionNo {
        partition_of(key, self.kernel.limits.partitions)
    }

    /// The same for a command, which knows its key's hash.
    pub(crate) fn partition_of_command(&self, command: &BuiltCommand) -> PartitionNo {
        command.key_hash.partition(self.kernel.limits.partitions)
    }

    /// Whether any caller here waits for a stage after PROCESSED. It has its place among the
    /// waiting before its command is admitted: where none has one, nobody here waits for a signal.
    fn has_waiters(&self) -> bool {
        self.waiters.taken() > 0
    }

    /// Whether callers' commands are taken. Asked with a permit in hand, in one order with the
    /// permits: a stop either counts the command or turns it away (R34).
    pub(crate) fn is_accepting(&self) -> bool {
        self.accepting.load(Ordering::SeqCst)
    }

    /// This node runs all that it should own, or does not.
    pub(crate) fn set_whole(&self, whole: bool) {
        self.whole.store(whole, Ordering::Release);
    }

    /// Whether nothing more happens here. Lanes read it between commands, so that the end waits
    /// for no queue.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Which router an aggregate type has (R20).
    pub(crate) fn router_of(&self, aggregate_type: &AggregateType) -> RouterKind {
        // Most nodes set none.
        match self.routers.is_empty() {
            true => RouterKind::default(),
            false => self
                .routers
                .get(aggregate_type)
                .copied()
                .unwrap_or_default(),
        }
    }

    /// Which admission actor takes a submission: the one on the thread of the aggregate's lane,
    /// where the submission says enough to know, for a hop between threads costs more than all
    /// of admission. Admission decides what the identity is; this only guesses where it will run.
    pub(crate) fn admission_place(&self, submission: &Submission) -> usize {
        self.likely_partition(submission).map_or_else(
            || self.next_admission.fetch_add(1, Ordering::Relaxed),
            |partition| partition.0 as usize,
        )
    }

    fn likely_partition(&self, submission: &Submission) -> Option<PartitionNo> {
        // Where there is one thread, nothing has to be known.
        if self.routing.addresses()?.admissions.len() == 1 {
            return Some(PartitionNo(0));
        }
        let (aggregate, _) = self.registry.resolve(&submission.target).ok()?;
        let facts = &submission.facts;
        let id = match aggregate.owner_is_id() {
            true => facts.aggregate_id.first().or(facts.owner.first()),
            false => facts.aggregate_id.first(),
        };
        let (_, id) = id?;
        let tenant = match &aggregate.static_tenant {
            Some(tenant) => tenant.as_str(),
            None => facts
                .tenant
                .first()
                .map_or(DEFAULT_TENANT, |(_, tenant)| tenant),
        };
        let parts = [tenant, aggregate.aggregate_type.as_str(), id.as_str()];
        Some(partition_of_parts(parts, self.kernel.limits.partitions))
    }

    /// Tells the callers of these commits that a stage is reached, or why it never will be. Those
    /// on nodes that can't be told find it in storage (R63).
    pub(crate) fn signal<'a>(
        &self,
        stage: Stage,
        function: &Arc<FunctionInfo>,
        error: Option<&CommandError>,
        commits: impl Iterator<Item = &'a Commit>,
    ) {
        if self.peers.is_none() && !self.has_waiters() {
            return;
        }
        let (own, others): (Vec<_>, Vec<_>) =
            commits.partition(|commit| commit.origin == self.node);
        self.tell_waits(own.into_iter().map(|commit| StageReached {
            command_id: commit.command_id,
            stage,
            function: Arc::clone(function),
            error: error.cloned(),
        }));
        let Some(peers) = self.peers.as_ref().filter(|_| !others.is_empty()) else {
            return;
        };
        let mut by_origin: HashMap<&NodeName, Vec<Signal>> = HashMap::new();
        for commit in others {
            by_origin.entry(&commit.origin).or_default().push(Signal {
                command_id: commit.command_id,
                stage,
                function: FunctionInfo::clone(function),
                error: error.cloned(),
            });
        }
        for (origin, signals) in by_origin {
            peers.signal(origin, signals);
        }
    }

    /// Hands stages to the actors that hold the callers' waits.
    pub(crate) fn tell_waits(&self, all: impl Iterator<Item = StageReached>) {
        let Some(addresses) = self.routing.addresses().filter(|_| self.has_waiters()) else {
            return;
        };
        let mut by_place: Vec<Vec<StageReached>> = vec![Vec::new(); addresses.waits.len()];
        for reached in all {
            by_place[Self::place_of(reached.command_id, addresses.waits.len())].push(reached);
        }
        for (waits, reached) in addresses.waits.iter().zip(by_place) {
            // A signal that finds no room is made up for by the look at storage (R63).
            if !reached.is_empty() && waits.try_send(Reached(reached)).is_err() {
                self.metrics.signals_lost();
            }
        }
    }

    /// Ends once the system is at least in this phase.
    pub(crate) async fn in_phase(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The sender lives in this very struct.
        let _ = phases.wait_for(|now| *now >= phase).await;
    }

    pub(crate) fn is_in_phase(&self, phase: Phase) -> bool {
        *self.phase.borrow() >= phase
    }

    /// Which of so many actors looks after a command's waits.
    pub(crate) fn place_of(command_id: CommandId, places: usize) -> usize {
        // The last bytes of a UUIDv7 are random.
        let bytes = command_id.0.into_bytes();
        usize::from(bytes[15]) % places
    }
}
