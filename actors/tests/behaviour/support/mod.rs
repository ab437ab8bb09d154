//! Nodes to test: over a store in memory that fails when a test says so.

pub mod nasty;
pub mod network;
pub mod sagas;

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use wow_actors::{
    BlockingPool, Handle, Limits, MembershipConfig, NodeClock, NodeRandom, Placement, Ports,
    RunningSystem, StartError, StopReport, SystemConfig,
};
use wow_kernel::access::AccessMode;
use wow_kernel::admission::AdmissionLimits;
use wow_kernel::commit::Commit;
use wow_kernel::error::CommandError;
use wow_kernel::execute::KernelLimits;
use wow_kernel::faults::{Faults, Faulty};
use wow_kernel::id::{AggregateId, AggregateKey, AggregateType, NodeName, TenantId, Version};
use wow_kernel::memory::MemoryStore;
use wow_kernel::model::{Command, Rejection, Services};
use wow_kernel::ports::{Authorizer, Clock, CommitLog, Isolation, PeerChannel};
use wow_kernel::registry::{Registry, RegistryBuilder};
use wow_kernel::result::CommandResult;
use wow_kernel::router::RouterKind;
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use nasty::{Gates, Nasty, Note, Stillborn, TRANSFORMER_PANICS};
use sagas::{Controls, Mover, Pump, Watcher};

/// How long a member's lease is valid.
pub const LEASE_TTL: Duration = Duration::from_secs(10);

/// How long a partition's runners have to finish when it is handed over.
pub const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(30);

pub type Answer = Result<CommandResult, CommandError>;

/// Runs a test on one thread, on a clock that stands still while anything has work to do, and
/// jumps to the next timer when nothing has.
pub fn paused<T>(test: impl Future<Output = T>) -> T {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
    };
    actix::System::with_tokio_rt(runtime).block_on(test)
}

/// Lets so much of the paused time pass.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Lets the others go on until something holds. On a paused clock no time passes meanwhile.
pub async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// What outlives a node: the store.
#[derive(Clone)]
pub struct World {
    pub store: Arc<MemoryStore>,
    pub controls: Arc<Controls>,
    pub gates: Gates,
}

/// A node, before it starts.
pub struct Plan {
    world: World,
    faults: Option<Faults>,
    pub name: &'static str,
    pub placement: Placement,
    pub limits: Limits,
    pub kernel: KernelLimits,
    pub routers: HashMap<AggregateType, RouterKind>,
    pub with_sagas: bool,
    pub clock: Arc<dyn Clock>,
    pub isolation: Option<Arc<dyn Isolation>>,
    pub is_member: bool,
    pub peers: Option<Arc<dyn PeerChannel>>,
}

/// A running node.
pub struct Node {
    pub system: RunningSystem,
    pub handle: Handle,
    pub faults: Faults,
    metrics: prometheus::Registry,
}

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

impl World {
    pub fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new(Arc::new(NodeClock::new()))),
            controls: Arc::default(),
            gates: Gates::default(),
        }
    }

    /// A node on the current thread.
    pub fn here(&self) -> Plan {
        Plan {
            world: self.clone(),
            faults: None,
            name: "n-1",
            placement: Placement::Here,
            limits: Limits {
                shutdown_timeout: Duration::from_secs(10),
                ..Limits::default()
            },
            kernel: KernelLimits {
                partitions: 4,
                ..KernelLimits::default()
            },
            routers: HashMap::new(),
            with_sagas: false,
            clock: Arc::new(NodeClock::new()),
            isolation: None,
            is_member: false,
            peers: None,
        }
    }

    /// A node on threads of its own.
    pub fn on_threads(&self, count: usize) -> Plan {
        Plan {
            placement: Placement::Arbiters(count),
            ..self.here()
        }
    }

    /// The numbers that an aggregate's commits have noted, in order.
    pub async fn notes(&self, id: &str) -> Vec<u64> {
        let commits = self.commits("nasty", id).await;
        let bodies = commits.iter().flat_map(|commit| commit.events.iter());
        bodies
            .filter(|event| &*event.name == "noted")
            .map(|event| {
                let body: serde_json::Value = serde_json::from_str(event.body.get()).unwrap();
                body["n"].as_u64().unwrap()
            })
            .collect()
    }

    /// Every commit of an aggregate.
    pub async fn commits(&self, aggregate: &str, id: &str) -> Vec<Commit> {
        self.store
            .read_aggregate(&key(aggregate, id), 0, Version::MAX, usize::MAX)
            .await
            .unwrap()
    }
}

impl Plan {
    /// With the sagas, and the type they follow.
    pub fn with_sagas(mut self) -> Self {
        self.with_sagas = true;
        self
    }

    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub fn kernel(mut self, change: impl FnOnce(&mut KernelLimits)) -> Self {
        change(&mut self.kernel);
        self
    }

    /// As a member of the service, which shares the partitions with others.
    pub fn member(mut self, name: &'static str) -> Self {
        (self.name, self.is_member) = (name, true);
        self
    }

    /// With faults that are planned before the node starts.
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    fn registry(&self) -> Registry {
        let types = RegistryBuilder::new("test")
            .register::<Nasty>()
            .register::<Stillborn>()
            .transform(|note: Note, _context| match note.n {
                TRANSFORMER_PANICS => panic!("a transformer panics"),
                _ => Ok::<_, Rejection>(note),
            });
        let types = match self.with_sagas {
            true => types
                .register::<Pump>()
                .saga(Mover(Arc::clone(&self.world.controls)))
                .saga(Watcher),
            false => types,
        };
        types.build().unwrap()
    }

    pub async fn start(self) -> Node {
        self.try_start().await.unwrap()
    }

    pub async fn try_start(self) -> Result<Node, StartError> {
        let registry = Arc::new(self.registry());
        let faults = self
            .faults
            .unwrap_or_else(|| Faults::new(Arc::clone(&self.clock)));
        let store: Arc<Faulty<MemoryStore>> = faults.wrap(Arc::clone(&self.world.store));
        let pool = || BlockingPool::new(tokio::runtime::Handle::current(), self.limits.blocking);
        let ports = Ports {
            log: store.clone(),
            history: store.clone(),
            requests: store.clone(),
            snapshots: store.clone(),
            checkpoints: store.clone(),
            authorizer: Arc::new(DeclaredRules),
            clock: self.clock,
            random: Arc::new(NodeRandom),
            isolation: self.isolation.unwrap_or_else(|| Arc::new(pool())),
        };
        let config = SystemConfig {
            node: NodeName::trusted(self.name),
            mode: AccessMode::Open,
            admission: AdmissionLimits {
                body_bytes_max: 1024 * 1024,
                wait_timeout_max: Duration::from_secs(3 * 3600),
            },
            kernel: self.kernel,
            routers: self.routers,
            recent_requests: 256,
            limits: self.limits,
            placement: self.placement,
            membership: self.is_member.then(|| MembershipConfig {
                leases: store,
                address: format!("{}:9090", self.name),
                lease_ttl: LEASE_TTL,
                hand_over_timeout: HAND_OVER_TIMEOUT,
                peers: self.peers,
            }),
        };
        let mut services = Services::default();
        services.provide(self.world.gates.clone());
        let metrics = prometheus::Registry::new();
        let services = Arc::new(services);
        let system = RunningSystem::start(config, registry, services, ports, &metrics).await?;
        Ok(Node {
            handle: system.handle(),
            system,
            faults,
            metrics,
        })
    }
}

impl Node {
    /// Sends a command now, and gives what will answer it. Commands arrive in the order in which
    /// they are begun.
    pub fn begin(&self, submission: Submission) -> tokio::task::JoinHandle<Answer> {
        let handle = self.handle.clone();
        let mut answer = Box::pin(async move { handle.submit(submission).await });
        let mut unscheduled = task::Context::from_waker(task::Waker::noop());
        match answer.as_mut().poll(&mut unscheduled) {
            Poll::Ready(answer) => tokio::spawn(std::future::ready(answer)),
            Poll::Pending => tokio::spawn(answer),
        }
    }

    /// Runs a command to PROCESSED; what fails it is an error.
    pub async fn run(&self, submission: Submission) -> Answer {
        let submission = submission.wait(Stage::Processed);
        self.handle.submit(submission).await?.into_result()
    }

    /// A metric's value, summed over the samples that have these labels.
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let families = self.metrics.gather();
        // One without samples yet is not shown.
        let family = families.iter().find(|family| family.name() == name);
        let samples = family.map_or(&[][..], |family| family.get_metric());
        samples
            .iter()
            .filter(|sample| {
                labels.iter().all(|(name, value)| {
                    let own = sample.get_label();
                    own.iter()
                        .any(|label| label.name() == *name && label.value() == *value)
                })
            })
            .map(|sample| sample.get_counter().get_value() + sample.get_gauge().get_value())
            .sum()
    }

    pub fn in_flight(&self) -> f64 {
        self.metric("wow_commands_in_flight", &[])
    }

    pub fn lanes(&self) -> f64 {
        self.metric("wow_lanes", &[])
    }

    /// How many partitions' subscriptions run here.
    pub fn partitions(&self) -> f64 {
        self.metric("wow_partitions_run", &[])
    }

    pub fn waits_open(&self) -> f64 {
        self.metric("wow_waits_open", &[])
    }

    pub async fn stop(self) -> StopReport {
        self.system.stop().await
    }
}

/// A command to an aggregate.
pub fn to<C: Command>(id: &str, command: C) -> Submission {
    Submission::typed(command).aggregate_id(id)
}

/// A note to an aggregate.
pub fn note(id: &str, n: u64) -> Submission {
    to(id, Note { n })
}

pub fn key(aggregate: &str, id: &str) -> AggregateKey {
    AggregateKey {
        tenant: TenantId::trusted("(0)"),
        aggregate_type: AggregateType::trusted(aggregate),
        id: AggregateId::trusted(id),
    }
}

/// What failed a command.
pub fn error(answer: &Answer) -> Option<&CommandError> {
    match answer {
        Err(error) => Some(error),
        Ok(result) => result.error.as_ref(),
    }
}

/// Its code; `Ok` where nothing did.
pub fn code(answer: &Answer) -> String {
    error(answer).map_or_else(|| "Ok".to_owned(), |error| error.code().into_owned())
}
