//! Membership: this node's lease, and which partitions are its own (R70 to R74).
//!
//! Owns: the member's lease, and a tenure of each partition that this node runs.
//! Receives: nothing; it looks at storage every third of the lease's time.
//! Sends: nothing; it starts and ends the partitions' runners, and keeps the routing table.
//! Bounded by: one look at a time.
//! Ends when: the system stops, once its partitions are released and its row is gone.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, ArbiterHandle, AsyncContext, Context, WrapFuture,
};
use tokio::sync::oneshot;
use wow_kernel::id::PartitionNo;
use wow_kernel::membership::{Look, Repairs};
use wow_kernel::ports::{
    LeaseStore, Member, MemberClaim, MemberState, PartitionLease, PeerChannel, StorageError,
};
use wow_kernel::router::PartitionOwner;

use crate::metrics::OwnershipChange;
use crate::shared::{Phase, Shared};
use crate::tenure::{Tenure, start_runners};

/// How long after the expiry of another's lease it is looked for.
const AFTER_EXPIRY: Duration = Duration::from_millis(100);

/// How much longer than a lease's time a start waits for its name (R70).
const CLAIM_MARGIN: Duration = Duration::from_secs(2);

/// How often a name that is held is asked for at start.
const CLAIM_PAUSE: Duration = Duration::from_millis(500);

/// How long a look follows another at the soonest, however many hints come.
const HINT_PAUSE: Duration = Duration::from_millis(50);

/// The protocol of the cluster channel that this version speaks.
const PROTOCOL: u16 = 1;

/// How a node takes part in sharing the partitions.
#[derive(Clone)]
pub struct MembershipConfig {
    /// Where leases are stored.
    pub leases: Arc<dyn LeaseStore>,
    /// Where other nodes reach this one.
    pub address: String,
    /// How long a lease is valid without renewal.
    pub lease_ttl: Duration,
    /// How long a partition's runners have to finish when it is handed over (R73).
    pub hand_over_timeout: Duration,
    /// The channel to the other members; none lets each node run what it is sent.
    pub peers: Option<Arc<dyn PeerChannel>>,
}

impl fmt::Debug for MembershipConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MembershipConfig")
            .field("address", &self.address)
            .field("lease_ttl", &self.lease_ttl)
            .field("hand_over_timeout", &self.hand_over_timeout)
            .finish_non_exhaustive()
    }
}

/// Why a node can't become a member.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another node has its name.
    #[error(
        "another live node is named '{name}': give each node a name of its own (node.name, or WOW_NODE_NAME)"
    )]
    NameHeld {
        /// The name.
        name: String,
    },
    /// Storage failed.
    #[error("the node can't become a member: {0}")]
    Storage(#[from] StorageError),
}

/// A partition that this node runs.
#[derive(Debug)]
struct Held {
    tenure: Arc<Tenure>,
    /// When it began to be given up, if it is.
    ending_since: Option<Duration>,
}

/// The actor.
#[derive(Debug)]
pub(crate) struct Membership {
    work: Option<Work>,
}

/// A claimed membership.
#[derive(Debug)]
pub(crate) struct Work {
    shared: Arc<Shared>,
    config: MembershipConfig,
    arbiters: Vec<ArbiterHandle>,
    me: Member,
    /// Until when this node may act as an owner, by its own clock (R74).
    valid_until: Duration,
    held: HashMap<PartitionNo, Held>,
    /// Closed when all is released.
    left: Option<oneshot::Sender<()>>,
}

/// What a renewal came to.
enum Renewal {
    View(Vec<Member>, Vec<PartitionLease>),
    /// The lease ran out, or another life of this name has it.
    Lost,
}

impl Work {
    /// Claims this node's name: waits for the lease of an earlier life to run out, and refuses
    /// where another node keeps it (R70).
    ///
    /// # Errors
    /// [`ClaimError`].
    pub(crate) async fn claim(
        shared: &Arc<Shared>,
        config: MembershipConfig,
        arbiters: &[ArbiterHandle],
    ) -> Result<(Self, oneshot::Receiver<()>), ClaimError> {
        let me = Member {
            name: shared.node.clone(),
            incarnation: shared.kernel.random.uuid(),
            address: config.address.clone(),
            state: MemberState::Live,
            protocol_min: PROTOCOL,
            protocol_max: PROTOCOL,
            valid_for: Duration::ZERO,
        };
        let clock = &shared.clock;
        let give_up_at = clock.monotonic() + config.lease_ttl + CLAIM_MARGIN;
        let claimed_at = loop {
            let asked_at = clock.monotonic();
            match config.leases.claim(&me, config.lease_ttl).await? {
                MemberClaim::Claimed => break asked_at,
                MemberClaim::Held(left) if asked_at >= give_up_at => {
                    tracing::error!(name = %me.name, ?left, "the node's name is held by another");
                    return Err(ClaimError::NameHeld {
                        name: me.name.to_string(),
                    });
                }
                MemberClaim::Held(left) => {
                    tracing::info!(name = %me.name, ?left, "the node's name is still held");
                    clock.sleep(left.min(CLAIM_PAUSE)).await;
                }
            }
        };
        let (left, leaving) = oneshot::channel();
        let work = Self {
            shared: Arc::clone(shared),
            valid_until: claimed_at + valid_time(&config),
            config,
            arbiters: arbiters.to_vec(),
            me,
            held: HashMap::new(),
            left: Some(left),
        };
        Ok((work, leaving))
    }

    async fn run(mut self) {
        let mut pause = Duration::ZERO;
        loop {
            if self.shared.is_in_phase(Phase::Draining) {
                self.me.state = MemberState::Draining;
            }
            let before_draining = self.me.state == MemberState::Live;
            tokio::select! {
                biased;
                () = self.shared.in_phase(Phase::Ended) => return,
                () = self.runners_of_stopped_system_ended() => break,
                () = self.shared.in_phase(Phase::Draining), if before_draining => {}
                () = self.given_up() => {}
                () = self.hinted(pause) => {}
            }
            if self.me.state == MemberState::Live && self.shared.is_in_phase(Phase::Draining) {
                self.me.state = MemberState::Draining;
            }
            self.release_given_up().await;
            pause = self.look().await;
        }
        self.leave().await;
    }

    /// Ends when it is time to look again, or another node says that it is. Hints that come one
    /// after the other are one look.
    async fn hinted(&self, pause: Duration) {
        let clock = &self.shared.clock;
        let soonest = pause.min(HINT_PAUSE);
        clock.sleep(soonest).await;
        tokio::select! {
            () = clock.sleep(pause.saturating_sub(soonest)) => {}
            () = self.shared.look_now.notified() => {}
        }
    }

    /// Ends once the system stops and its subscriptions have saved where they are.
    async fn runners_of_stopped_system_ended(&self) {
        self.shared.in_phase(Phase::Stopping).await;
        self.shared.runners.all_ended().await;
    }

    /// One look at storage, and every repair it asks for. Answers when to look again.
    async fn look(&mut self) -> Duration {
        let every = self.config.lease_ttl / 3;
        let sent_at = self.shared.clock.monotonic();
        match self.renew().await {
            Ok(Renewal::View(members, leases)) => {
                self.valid_until = sent_at + valid_time(&self.config);
                if let Some(peers) = &self.shared.peers {
                    peers.set_members(&members);
                }
                let repairs = self.repairs(&members, &leases);
                self.shared.metrics.members(
                    members
                        .iter()
                        .filter(|member| !member.valid_for.is_zero())
                        .count(),
                );
                let expiry = repairs.look_again_in.map(|left| left + AFTER_EXPIRY);
                let is_settled = self.repair(repairs).await;
                let next = expiry.map_or(every, |expiry| every.min(expiry));
                // What was taken or started shows at the next look.
                match is_settled {
                    true => next,
                    false => next.min(every / 4),
                }
            }
            Ok(Renewal::Lost) => {
                self.lose_all("its lease was lost");
                self.claim_anew().await;
                every / 4
            }
            Err(error) => {
                self.shared.metrics.renewal_failed();
                tracing::warn!(%error, "the lease can't be renewed yet");
                self.demote_if_late();
                every / 4
            }
        }
    }

    /// Renews, and reads who is there. A call that hangs doesn't keep this node from giving up
    /// ownership in time.
    async fn renew(&mut self) -> Result<Renewal, StorageError> {
        let (leases, me, ttl) = (
            Arc::clone(&self.config.leases),
            self.me.clone(),
            self.config.lease_ttl,
        );
        let renewal = async move {
            if !leases.renew(&me, ttl).await? {
                return Ok(Renewal::Lost);
            }
            let (members, leases) = leases.view().await?;
            Ok(Renewal::View(members, leases))
        };
        let mut renewal = std::pin::pin!(renewal);
        let clock = Arc::clone(&self.shared.clock);
        let left = self.valid_until.saturating_sub(clock.monotonic());
        if !left.is_zero() {
            tokio::select! {
                biased;
                renewed = &mut renewal => return renewed,
                () = clock.sleep(left) => {}
            }
        }
        self.demote_if_late();
        tokio::select! {
            biased;
            renewed = &mut renewal => renewed,
            () = clock.sleep(ttl) => Err(StorageError::Unavailable(
                "the renewal of the lease got no answer".to_owned(),
            )),
        }
    }

    fn repairs(&mut self, members: &[Member], leases: &[PartitionLease]) -> Repairs {
        // Where a runner has found its place taken, all of them begin anew, if this node is still
        // the owner.
        self.held.retain(|_, held| {
            let is_over = held.tenure.is_superseded() && held.ending_since.is_none();
            if is_over {
                held.tenure.end();
            }
            !is_over
        });
        let running = self
            .held
            .iter()
            .map(|(partition, held)| (*partition, held.tenure.epoch))
            .collect();
        let look = Look {
            me: &self.me,
            members,
            leases,
            partitions: self.shared.kernel.limits.partitions,
            running: &running,
        };
        look.repairs()
    }

    /// Does what a look asks for; answers whether nothing is left to do.
    async fn repair(&mut self, repairs: Repairs) -> bool {
        let is_whole = repairs.is_whole();
        self.lose(&repairs.lost, "another node has taken it");
        // A node that stops keeps what it runs until those in flight are done, for their callers
        // wait for what follows; then it releases all at once.
        if self.me.state == MemberState::Live {
            self.hand_over(&repairs.hand_over);
            self.release(&repairs.release).await;
        }
        let taken = self.take(&repairs.take).await;
        let is_taken = taken.len() == repairs.take.len();
        let mut starting = repairs.start;
        starting.extend(taken);
        // One that is being given up, and should be ours again, starts anew when that is done.
        starting.retain(|lease| !self.held.contains_key(&lease.partition));
        let is_started = self.start(&starting).await;
        self.publish(repairs.owners);
        let runs_all = is_whole || (is_taken && is_started && repairs.awaited.is_empty());
        self.shared.set_whole(runs_all);
        is_whole && self.held.values().all(|held| held.ending_since.is_none())
    }

    /// The routing table: what the leases say, and what this node runs since.
    fn publish(&self, mut owners: Vec<PartitionOwner>) {
        for (at, owner) in owners.iter_mut().enumerate() {
            let partition = u32::try_from(at).map(PartitionNo).ok();
            let runs = partition
                .and_then(|partition| self.held.get(&partition))
                .is_some_and(|held| held.ending_since.is_none());
            match (runs, &*owner) {
                (true, _) => *owner = PartitionOwner::Here,
                (false, PartitionOwner::Here) => *owner = PartitionOwner::Unknown,
                (false, _) => {}
            }
        }
        self.shared.routing.set_owners(owners);
        self.shared.metrics.partitions_run(self.held.len());
    }

    async fn take(&self, free: &[PartitionLease]) -> Vec<PartitionLease> {
        if free.is_empty() {
            return Vec::new();
        }
        match self.config.leases.take(&self.me, free).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "partitions can't be taken yet");
                Vec::new()
            }
        }
    }

    /// Starts what follows the log in these partitions; whether that is done.
    async fn start(&mut self, leases: &[PartitionLease]) -> bool {
        if leases.is_empty() {
            return true;
        }
        let tenures: Vec<_> = leases
            .iter()
            .map(|lease| Tenure::new(&self.shared, lease.partition, lease.epoch))
            .collect();
        if let Err(error) = start_runners(&self.shared, &tenures, &self.arbiters).await {
            tracing::warn!(%error, "the subscriptions of partitions can't be started yet");
            return false;
        }
        for tenure in tenures {
            tracing::info!(partition_id = %tenure.partition, epoch = tenure.epoch, "partition taken");
            self.shared
                .metrics
                .ownership_changed(OwnershipChange::Taken);
            let held = Held {
                tenure,
                ending_since: None,
            };
            self.held.insert(held.tenure.partition, held);
        }
        self.hint_everyone();
        true
    }

    /// Tells the runners of these partitions to finish; they are released when that is done.
    fn hand_over(&mut self, partitions: &[PartitionNo]) {
        let now = self.shared.clock.monotonic();
        for partition in partitions {
            if let Some(held) = self.held.get_mut(partition)
                && held.ending_since.is_none()
            {
                held.ending_since = Some(now);
                held.tenure.give_up();
            }
        }
    }

    /// Ends once a partition that is being given up has no runner any more, or has had its time.
    async fn given_up(&self) {
        let now = self.shared.clock.monotonic();
        let ending = self.held.values().filter_map(|held| {
            let end = held.ending_since? + self.config.hand_over_timeout;
            let tenure = Arc::clone(&held.tenure);
            let limit = self.shared.clock.sleep(end.saturating_sub(now));
            Some(Box::pin(async move {
                tokio::select! {
                    () = tenure.runners.all_ended() => {}
                    () = limit => {}
                }
            }))
        });
        let ending: Vec<_> = ending.collect();
        match ending.is_empty() {
            true => std::future::pending().await,
            false => {
                futures_util::future::select_all(ending).await;
            }
        }
    }

    async fn release_given_up(&mut self) {
        let now = self.shared.clock.monotonic();
        let limit = self.config.hand_over_timeout;
        let mut done = Vec::new();
        for (partition, held) in &self.held {
            let Some(since) = held.ending_since else {
                continue;
            };
            let ended = held.tenure.runners.have_ended();
            if ended || now >= since + limit {
                if !ended {
                    // What is still running is held by the log's keys and by its epoch.
                    tracing::warn!(
                        partition_id = %partition,
                        "subscriptions had not ended when the partition was handed over"
                    );
                }
                let took = now.saturating_sub(since);
                tracing::info!(partition_id = %partition, epoch = held.tenure.epoch, ?took, "partition handed over");
                done.push(*partition);
            }
        }
        for partition in &done {
            if let Some(held) = self.held.remove(partition) {
                held.tenure.end();
                self.shared
                    .metrics
                    .ownership_changed(OwnershipChange::HandedOver);
            }
        }
        self.release(&done).await;
    }

    async fn release(&self, partitions: &[PartitionNo]) {
        if partitions.is_empty() {
            return;
        }
        // One that fails is found by the next look: ours, not run, and another's to be.
        match self.config.leases.release(&self.me, partitions).await {
            Ok(()) => self.hint_everyone(),
            Err(error) => tracing::warn!(%error, "partitions can't be released yet"),
        }
    }

    fn hint_everyone(&self) {
        if let Some(peers) = &self.shared.peers {
            peers.hint_ownership();
        }
    }

    /// Stops acting as an owner where the lease may have run out (R74).
    fn demote_if_late(&mut self) {
        if self.shared.clock.monotonic() >= self.valid_until {
            self.lose_all("the lease couldn't be renewed in time");
        }
    }

    fn lose_all(&mut self, why: &'static str) {
        let all: Vec<_> = self.held.keys().copied().collect();
        self.lose(&all, why);
        self.shared.set_whole(false);
        let count = self.shared.kernel.limits.partitions as usize;
        self.publish(vec![PartitionOwner::Unknown; count]);
    }

    fn lose(&mut self, partitions: &[PartitionNo], why: &'static str) {
        for partition in partitions {
            let Some(held) = self.held.remove(partition) else {
                continue;
            };
            let epoch = held.tenure.epoch;
            tracing::warn!(partition_id = %partition, epoch, why, "partition lost");
            held.tenure.end();
            self.shared.metrics.ownership_changed(OwnershipChange::Lost);
        }
    }

    /// Becomes a member again, in a new life.
    async fn claim_anew(&mut self) {
        self.me.incarnation = self.shared.kernel.random.uuid();
        let asked_at = self.shared.clock.monotonic();
        match self
            .config
            .leases
            .claim(&self.me, self.config.lease_ttl)
            .await
        {
            Ok(MemberClaim::Claimed) => {
                tracing::info!(name = %self.me.name, "member again");
                self.valid_until = asked_at + valid_time(&self.config);
            }
            Ok(MemberClaim::Held(left)) => {
                tracing::error!(name = %self.me.name, ?left, "another node has this node's name");
            }
            Err(error) => tracing::warn!(%error, "the name can't be claimed yet"),
        }
    }

    /// Releases everything, and ends the membership.
    async fn leave(&mut self) {
        let all: Vec<_> = self.held.drain().map(|(partition, _)| partition).collect();
        self.release(&all).await;
        if let Err(error) = self.config.leases.leave(&self.me).await {
            tracing::warn!(%error, "the membership can't be ended; its lease runs out");
        }
        tracing::info!(name = %self.me.name, partitions = all.len(), "left");
        self.left = None;
    }
}

/// How long a lease is relied on from the moment its renewal was sent: clocks may drift (R74).
fn valid_time(config: &MembershipConfig) -> Duration {
    config.lease_ttl - config.lease_ttl / 5
}

impl Membership {
    pub(crate) fn new(work: Work) -> Self {
        Self { work: Some(work) }
    }
}

impl Actor for Membership {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        if let Some(work) = self.work.take() {
            context.spawn(
                work.run()
                    .into_actor(self)
                    .map(|(), _membership, context| context.stop()),
            );
        }
    }
}
