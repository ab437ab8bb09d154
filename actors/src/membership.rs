//! Membership: this node's lease, and which partitions are its own (R70 to R74).
//!
//! Owns: the member's lease, and a tenure of each partition that this node runs.
//! Receives: nothing; it looks at storage every third of the lease's time.
//! Sends: nothing; it starts and ends the partitions' runners, and keeps the routing table.
//! Bounded by: one look at a time.
//! Ends when: the system stops, once its partitions are released and its row is gone.

mod ownership;

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

use crate::shared::{Phase, Shared};
use crate::tenure::Tenure;

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
