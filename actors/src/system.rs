//! Starts the tree of actors, and stops it in order (R34).

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use actix::{Actor, ArbiterHandle};
use async_trait::async_trait;
use tokio::sync::{Notify, oneshot, watch};
use wow_kernel::access::AccessMode;
use wow_kernel::admission::{Admission, AdmissionLimits};
use wow_kernel::error::CommandError;
use wow_kernel::execute::{Kernel, KernelLimits, Loader};
use wow_kernel::id::{AggregateType, NodeName, PartitionNo};
use wow_kernel::model::Services;
use wow_kernel::ports::{
    Authorizer, CheckpointStore, Clock, CommandSender, CommitLog, History, Isolation, Random,
    RequestLookup, SnapshotStore, StorageError,
};
use wow_kernel::registry::Registry;
use wow_kernel::result::CommandResult;
use wow_kernel::router::{PartitionOwner, RouterKind};
use wow_kernel::submission::Submission;

use crate::admission::AdmissionActor;
use crate::directory::LaneDirectory;
use crate::feed::Feeds;
use crate::handle::Handle;
use crate::limits::Limits;
use crate::membership::{ClaimError, Membership, MembershipConfig, Work};
use crate::metrics::{Metrics, Moment};
use crate::permits::Permits;
use crate::routing::{Addresses, Routing};
use crate::runner::HeadPoller;
use crate::shared::{Phase, Shared};
use crate::supervisor::PartitionSupervisor;
use crate::tenure::{SOLE_EPOCH, Tenure, start_runners};
use crate::threads::{ActorThreads, End, Placement, place};
use crate::waits::Waits;

/// What the running system needs of the world.
#[derive(Clone)]
pub struct Ports {
    /// The log.
    pub log: Arc<dyn CommitLog>,
    /// Cold aggregates and second looks.
    pub history: Arc<dyn History>,
    /// What a request committed.
    pub requests: Arc<dyn RequestLookup>,
    /// Snapshots.
    pub snapshots: Arc<dyn SnapshotStore>,
    /// Checkpoints.
    pub checkpoints: Arc<dyn CheckpointStore>,
    /// The user's say in access.
    pub authorizer: Arc<dyn Authorizer>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Where blocking command functions run.
    pub isolation: Arc<dyn Isolation>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// Who the node is, and its bounds.
#[derive(Debug, Clone)]
pub struct SystemConfig {
    /// Its name.
    pub node: NodeName,
    /// How callers are known.
    pub mode: AccessMode,
    /// The bounds of admission.
    pub admission: AdmissionLimits,
    /// The bounds of the command loop.
    pub kernel: KernelLimits,
    /// The routers of the aggregate types that aren't partitioned (R20). Without a topic,
    /// [`RouterKind::Kafka`] runs commands here.
    pub routers: HashMap<AggregateType, RouterKind>,
    /// How many recent requests a state carries (R41).
    pub recent_requests: usize,
    /// The bounds of the actors.
    pub limits: Limits,
    /// Where actors live.
    pub placement: Placement,
    /// How the node shares the partitions with others; none where storage is its own, and so are
    /// all partitions.
    pub membership: Option<MembershipConfig>,
}

/// Why the system didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Storage failed.
    #[error("checkpoints and heads can't be read: {0}")]
    Storage(#[from] StorageError),
    /// The node can't become a member.
    #[error(transparent)]
    Membership(#[from] ClaimError),
    /// Metrics of these names are registered already.
    #[error("metrics can't be registered: {0}")]
    Metrics(#[from] prometheus::Error),
    /// No thread could be made.
    #[error("the actors' threads can't be started: {0}")]
    Threads(#[from] std::io::Error),
}

/// The running system. One that is dropped without [`RunningSystem::stop`] ends at once, with
/// whatever is in flight.
#[derive(Debug)]
pub struct RunningSystem {
    shared: Arc<Shared>,
    // Before the threads, so that whoever sees an actor gone knows why.
    ends: Ends,
    threads: ActorThreads,
    /// Closed once this node has left the others, where it is a member.
    leaving: Option<oneshot::Receiver<()>>,
}

/// Says that the system has ended, at the latest when it is dropped.
#[derive(Debug)]
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.ready.store(false, Ordering::Release);
        self.0.accepting.store(false, Ordering::SeqCst);
        self.0.ended.store(true, Ordering::Release);
        self.0.phase.send_replace(Phase::Ended);
    }
}

/// How command functions send. It doesn't keep the node alive that keeps it.
struct Sender(Weak<Shared>);

#[async_trait]
impl CommandSender for Sender {
    async fn send(&self, submission: Submission) -> Result<CommandResult, CommandError> {
        let shared = self.0.upgrade().ok_or(CommandError::ShuttingDown)?;
        CommandSender::send(&Handle::of(shared), submission).await
    }
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopReport {
    /// Commands that had not finished within `runtime.shutdown-timeout`.
    pub unfinished: usize,
}

impl RunningSystem {
    /// Starts the tree: waits, supervisors, runners, and admission last.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(
        config: SystemConfig,
        registry: Arc<Registry>,
        services: Arc<Services>,
        ports: Ports,
        metrics: &prometheus::Registry,
    ) -> Result<Self, StartError> {
        let types = registry
            .aggregates()
            .iter()
            .map(|definition| &definition.aggregate_type);
        let counters = Arc::new(Metrics::register(metrics)?.for_types(types));
        let placement = config.placement.clone();
        let membership = config.membership.clone();
        let shared = Arc::new(assemble(config, registry, services, ports, counters));
        Moment::register(metrics, &shared)?;
        let sender = Sender(Arc::downgrade(&shared));
        // Set once, on a kernel that nobody else has seen yet.
        let _ = shared.kernel.sender.set(Arc::new(sender));
        let threads = ActorThreads::start(&placement).await?;
        let ends = Ends(Arc::clone(&shared));
        start_tree(&shared, &threads.arbiters).await?;
        let leaving = start_ownership(&shared, membership, &threads.arbiters).await?;
        shared.ready.store(true, Ordering::Release);
        shared.accepting.store(true, Ordering::SeqCst);
        Ok(Self {
            shared,
            ends,
            threads,
            leaving,
        })
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::of(Arc::clone(&self.shared))
    }

    /// Readiness turns false; commands are still taken for `runtime.drain-delay`, so that
    /// balancers notice (R34).
    pub async fn announce_stop(&self) {
        self.shared.ready.store(false, Ordering::Release);
        self.shared
            .clock
            .sleep(self.shared.limits.drain_delay)
            .await;
    }

    /// Refuses new commands, finishes those in flight, writes what is committed, answers whoever
    /// still waits, and ends every actor: all within `runtime.shutdown-timeout`, of which the
    /// last tenth is kept for what follows the commands.
    pub async fn stop(self) -> StopReport {
        let Self {
            shared,
            ends,
            threads,
            leaving,
        } = self;
        let (begun, limit) = (shared.clock.monotonic(), shared.limits.shutdown_timeout);
        shared.ready.store(false, Ordering::Release);
        shared.accepting.store(false, Ordering::SeqCst);
        shared.phase.send_replace(Phase::Draining);
        drained(&shared, begun + limit / 10 * 9).await;
        let unfinished = shared.permits.taken();
        if unfinished > 0 {
            tracing::error!(
                unfinished,
                "commands had not finished when the node stopped"
            );
        }
        shared.phase.send_replace(Phase::Stopping);
        let left = (begun + limit).saturating_sub(shared.clock.monotonic());
        let given_up = async {
            shared.runners.all_ended().await;
            if let Some(leaving) = leaving {
                // Closed, never sent: either way it is over.
                let _ = leaving.await;
            }
        };
        tokio::select! {
            biased;
            () = given_up => {}
            () = shared.clock.sleep(left) => {
                tracing::error!("subscriptions had not ended when the node stopped");
            }
        }
        drop(ends);
        end_actors(&shared);
        threads.stop().await;
        StopReport { unfinished }
    }
}

/// How often the count of those in flight is read while draining.
const DRAIN_LOOK: Duration = Duration::from_millis(5);

async fn drained(shared: &Shared, deadline: Duration) {
    while shared.permits.taken() > 0 && shared.clock.monotonic() < deadline {
        shared.clock.sleep(DRAIN_LOOK).await;
    }
}

/// Ends the actors that callers wait on. Runners and pollers have heard of the phase.
fn end_actors(shared: &Shared) {
    let Some(addresses) = shared.routing.addresses() else {
        return;
    };
    // One that can't be told is gone already.
    for admission in &addresses.admissions {
        let _ = admission.try_send(End);
    }
    for supervisor in &addresses.supervisors {
        let _ = supervisor.try_send(End);
    }
    for waits in &addresses.waits {
        let _ = waits.try_send(End);
    }
}

fn assemble(
    config: SystemConfig,
    registry: Arc<Registry>,
    services: Arc<Services>,
    ports: Ports,
    metrics: Arc<Metrics>,
) -> Shared {
    let SystemConfig {
        node,
        mode,
        admission,
        kernel,
        routers,
        recent_requests,
        limits,
        placement: _,
        membership,
    } = config;
    let partitions = kernel.partitions;
    let has_membership = membership.is_some();
    let peers = membership.and_then(|membership| membership.peers);
    let owner = match has_membership {
        true => PartitionOwner::Unknown,
        false => PartitionOwner::Here,
    };
    Shared {
        admission: Admission {
            registry: Arc::clone(&registry),
            mode,
            authorizer: Arc::clone(&ports.authorizer),
            requests: Arc::clone(&ports.requests),
            clock: Arc::clone(&ports.clock),
            random: Arc::clone(&ports.random),
            node: node.clone(),
            limits: admission,
        },
        kernel: assemble_kernel(&ports, services, &metrics, kernel, mode, recent_requests),
        routers,
        snapshots: ports.snapshots,
        checkpoints: ports.checkpoints,
        clock: ports.clock,
        permits: Permits::with_reserve(limits.in_flight),
        waiters: Permits::new(limits.waiters),
        directory: LaneDirectory::new(
            partitions,
            limits.lane_queue,
            limits.live_aggregates,
            limits.state_bytes,
        ),
        feeds: Feeds::new(partitions),
        routing: Routing::all(&owner, partitions),
        metrics,
        accepting: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        ready: AtomicBool::new(false),
        whole: AtomicBool::new(!has_membership),
        has_membership,
        peers,
        look_now: Notify::new(),
        phase: watch::Sender::new(Phase::Running),
        runners: Arc::default(),
        next_admission: AtomicUsize::new(0),
        node,
        registry,
        limits,
    }
}

fn assemble_kernel(
    ports: &Ports,
    services: Arc<Services>,
    metrics: &Arc<Metrics>,
    limits: KernelLimits,
    mode: AccessMode,
    recent_requests: usize,
) -> Kernel {
    let loader = Loader {
        history: Arc::clone(&ports.history),
        log: Arc::clone(&ports.log),
        observer: metrics.clone(),
        recent_requests,
    };
    Kernel {
        loader,
        log: Arc::clone(&ports.log),
        history: Arc::clone(&ports.history),
        requests: Arc::clone(&ports.requests),
        clock: Arc::clone(&ports.clock),
        random: Arc::clone(&ports.random),
        isolation: Arc::clone(&ports.isolation),
        observer: metrics.clone(),
        services,
        mode,
        limits,
        sender: OnceLock::new(),
    }
}

async fn start_tree(shared: &Arc<Shared>, arbiters: &[ArbiterHandle]) -> Result<(), StartError> {
    let partitions: Vec<_> = (0..shared.kernel.limits.partitions)
        .map(PartitionNo)
        .collect();
    for found in shared.kernel.log.heads(&partitions).await? {
        shared.feeds.of(found.partition).note_head(found.head);
    }
    let on = |partition: &PartitionNo| &arbiters[partition.0 as usize % arbiters.len()];
    // What is in a mailbox carries a permit, so these sizes are never reached; one more is for
    // the end.
    let (commands, waiters) = (shared.limits.in_flight + 2, shared.limits.waiters + 2);
    let gone = || StartError::Threads(std::io::Error::other("an arbiter ended at start"));
    let (mut waits, mut admissions) = (Vec::new(), Vec::new());
    for arbiter in arbiters {
        let actor = Waits::new(shared);
        waits.push(place(arbiter, waiters, actor).await.ok_or_else(gone)?);
        let actor = AdmissionActor::new(Arc::clone(shared));
        admissions.push(place(arbiter, commands, actor).await.ok_or_else(gone)?);
    }
    let mut supervisors = Vec::with_capacity(partitions.len());
    for partition in &partitions {
        let actor = PartitionSupervisor::new(*partition, Arc::clone(shared));
        supervisors.push(
            place(on(partition), commands, actor)
                .await
                .ok_or_else(gone)?,
        );
    }
    shared.routing.set_addresses(Addresses {
        admissions,
        supervisors,
        waits,
    });
    let poller = HeadPoller {
        shared: Arc::clone(shared),
    };
    HeadPoller::start_in_arbiter(&arbiters[0], move |_| poller);
    Ok(())
}

/// Starts what runs on the owner of a partition: for all of them at once where storage is this
/// node's own, else as leases are taken.
async fn start_ownership(
    shared: &Arc<Shared>,
    membership: Option<MembershipConfig>,
    arbiters: &[ArbiterHandle],
) -> Result<Option<oneshot::Receiver<()>>, StartError> {
    let Some(membership) = membership else {
        let tenures: Vec<_> = (0..shared.kernel.limits.partitions)
            .map(|partition| Tenure::new(shared, PartitionNo(partition), SOLE_EPOCH))
            .collect();
        start_runners(shared, &tenures, arbiters).await?;
        return Ok(None);
    };
    let (work, leaving) = Work::claim(shared, membership, arbiters).await?;
    Membership::start_in_arbiter(&arbiters[0], move |_| Membership::new(work));
    Ok(Some(leaving))
}
