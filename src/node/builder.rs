//! From types, services and rules to a running node.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wow_actors::{
    BlockingPool, Limits, NodeClock, NodeRandom, Placement, Ports, RunningSystem, StartError,
    SystemConfig,
};
use wow_kernel::access::AccessMode;
use wow_kernel::admission::{AdmissionLimits, TransformContext};
use wow_kernel::execute::{KernelLimits, Loader};
use wow_kernel::id::AggregateType;
use wow_kernel::model::{Aggregate, Command, Rejection, Saga, Services};
use wow_kernel::ports::{Authorizer, Clock, Unobserved};
use wow_kernel::read::Reader;
use wow_kernel::registry::{Registry, RegistryBuilder, RegistryError};
use wow_kernel::router::RouterKind;

use super::backend::{Backend, StorePorts};
use super::check::{self, Checked, NotYet};
use super::cluster::{Cluster, membership};
use super::gateway::{NodeReadiness, OpenAccess, TokenAccess};
use super::health::{Observed, StorageHealth};
use super::metrics::{StorageMetrics, register_build};
use super::routers::RouterError;
use super::servers::{ServerParts, Servers};
use super::settings::AccessIncomplete;
use super::{Addresses, Node};
use crate::access::{KeyError, Verifier};
use crate::admin::{AdminError, AdminSettings, AdminToken};
use crate::cluster::ClusterError;
use crate::config::{AccessModeSetting, Config, ConfigError, StorageUrl};
use crate::http::{HttpError, HttpSettings, NodeGateway};
use crate::storage::OpenError;

/// Why a node didn't start. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration is faulty.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The registered types don't fit together.
    #[error("the registered types don't fit together: {}", list(.0))]
    Types(Vec<RegistryError>),
    /// Storage can't be opened.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// The running system can't be started.
    #[error(transparent)]
    System(#[from] StartError),
    /// The internal port can't be set up.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The public port can't be set up.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The admin port can't be set up.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// Tokens can't be verified.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// How tokens are verified isn't said.
    #[error(transparent)]
    Access(#[from] AccessIncomplete),
    /// An aggregate type can't be routed as configured.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// Metrics can't be registered.
    #[error("metrics can't be registered: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The configuration asks for what this version doesn't have.
    #[error("{}", missing(.0))]
    NotYet(Vec<NotYet>),
    /// No thread could be made.
    #[error("threads can't be started: {0}")]
    Threads(#[source] io::Error),
}

fn list(errors: &[RegistryError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

fn missing(missing: &[NotYet]) -> String {
    let line = |NotYet { key, what }: &NotYet| {
        format!("{key} is set, and this version has no {what} yet; leave it out")
    };
    missing.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Puts a node together.
///
/// ```no_run
/// # use wow::prelude::*;
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let node = NodeBuilder::in_memory().start().await?;
/// node.stop().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "a node starts with `start`"]
pub struct NodeBuilder {
    pub(super) config: Config,
    listens: bool,
    types: RegistryBuilder,
    services: Services,
    authorizer: Arc<dyn Authorizer>,
    give_up: CancellationToken,
}

impl std::fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeBuilder")
            .field("types", &self.types)
            .finish_non_exhaustive()
    }
}

/// Judges by the declared rules alone.
struct DeclaredRules;

impl Authorizer for DeclaredRules {}

impl NodeBuilder {
    /// A node as the configuration says, with its ports.
    pub fn from_config(config: Config) -> Self {
        let types = RegistryBuilder::new(config.context.name.as_str());
        Self {
            config,
            listens: true,
            types,
            services: Services::default(),
            authorizer: Arc::new(DeclaredRules),
            give_up: CancellationToken::new(),
        }
    }

    /// A node that keeps its log in memory and listens nowhere: for tests and in-process use.
    pub fn in_memory() -> Self {
        let mut config = Config::default();
        config.storage.url = StorageUrl::memory();
        Self::from_config(config).without_ports()
    }

    /// Listens nowhere: commands come from this process alone.
    pub fn without_ports(mut self) -> Self {
        self.listens = false;
        self
    }

    /// Adds an aggregate type with its commands.
    pub fn register<A: Aggregate>(mut self) -> Self {
        self.types = self.types.register::<A>();
        self
    }

    /// Adds a saga.
    pub fn saga<S: Saga>(mut self, saga: S) -> Self {
        self.types = self.types.saga(saga);
        self
    }

    /// Adds a transformer for a command type (R6).
    pub fn transform<C: Command + Clone>(
        mut self,
        transform: impl Fn(C, &TransformContext<'_>) -> Result<C, Rejection> + Send + Sync + 'static,
    ) -> Self {
        self.types = self.types.transform(transform);
        self
    }

    /// Provides a service to command functions, by its type.
    pub fn provide<T: Send + Sync + 'static>(mut self, service: T) -> Self {
        self.services.provide(service);
        self
    }

    /// Provides services another way: what a function of the user's does.
    pub fn services(mut self, provide: impl FnOnce(&mut Services)) -> Self {
        provide(&mut self.services);
        self
    }

    /// Has a say in who may do what, beside the declared rules (R4).
    pub fn authorizer(mut self, authorizer: impl Authorizer + 'static) -> Self {
        self.authorizer = Arc::new(authorizer);
        self
    }

    /// Adds types another way: what a function of the user's does with the registry.
    pub fn types(mut self, add: impl FnOnce(RegistryBuilder) -> RegistryBuilder) -> Self {
        self.types = add(self.types);
        self
    }

    /// Ends a start that waits for its database when this is cancelled.
    pub fn give_up_on(mut self, stop: CancellationToken) -> Self {
        self.give_up = stop;
        self
    }

    /// Refuses what a start would refuse before it touches storage or a port.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn check(self) -> Result<(), NodeError> {
        let clock = Arc::new(NodeClock::new());
        check::check(&self.config, self.types, clock)
            .await
            .map(drop)
    }

    /// Starts the node: storage, then the actors, the ports last.
    ///
    /// # Errors
    /// [`NodeError`].
    pub async fn start(self) -> Result<Node, NodeError> {
        let Self {
            config,
            listens,
            types,
            services,
            authorizer,
            give_up,
        } = self;
        let clock: Arc<dyn Clock> = Arc::new(NodeClock::new());
        let Checked {
            registry,
            routers,
            verifier,
        } = check::check(&config, types, Arc::clone(&clock)).await?;
        let metrics = prometheus::Registry::new();
        register_build(&metrics)?;
        let health = Arc::new(StorageHealth::new(Arc::clone(&clock)));
        let observed = Observed {
            metrics: StorageMetrics::register(&metrics)?,
            health: Arc::clone(&health),
        };
        let (backend, store) =
            Backend::open(&config, Arc::clone(&clock), observed, give_up).await?;
        let cluster = match Cluster::open(&config, backend.runtime()).await {
            Ok(cluster) => cluster,
            Err(error) => {
                backend.close().await;
                return Err(error);
            }
        };
        let mut system = system_config(&config, routers);
        system.membership = membership(&config, store.leases.clone(), cluster.as_ref());
        let started = start_system(
            system, &registry, services, authorizer, &store, &backend, &clock, &metrics,
        )
        .await;
        let (system, reader) = match started {
            Ok(started) => started,
            Err(error) => {
                backend.close().await;
                return Err(error);
            }
        };
        let mut node = Node {
            system,
            reader,
            servers: None,
            cluster: None,
            backend,
            metrics,
            addresses: Addresses::default(),
        };
        if let Some(cluster) = cluster {
            let running = cluster.serve(Arc::new(node.handle()));
            node.addresses.cluster = Some(running.address());
            node.cluster = Some(running);
        }
        if listens
            && let Err(error) = open_ports(&config, &registry, verifier, health, &mut node).await
        {
            node.stop().await;
            return Err(error);
        }
        Ok(node)
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of a node, each once")]
async fn start_system(
    system: SystemConfig,
    registry: &Arc<Registry>,
    services: Services,
    authorizer: Arc<dyn Authorizer>,
    store: &StorePorts,
    backend: &Backend,
    clock: &Arc<dyn Clock>,
    metrics: &prometheus::Registry,
) -> Result<(RunningSystem, Arc<Reader>), NodeError> {
    let StorePorts {
        log,
        history,
        requests,
        snapshots,
        checkpoints,
        leases: _,
    } = store.clone();
    let reader = Arc::new(Reader {
        registry: Arc::clone(registry),
        loader: Loader {
            history: Arc::clone(&history),
            log: Arc::clone(&log),
            observer: Arc::new(Unobserved),
            // A reader answers no duplicates.
            recent_requests: 0,
        },
        snapshots: Arc::clone(&snapshots),
        authorizer: Arc::clone(&authorizer),
        mode: system.mode,
    });
    let ports = Ports {
        log,
        history,
        requests,
        snapshots,
        checkpoints,
        authorizer,
        clock: Arc::clone(clock),
        random: Arc::new(NodeRandom),
        isolation: Arc::new(BlockingPool::new(backend.runtime(), system.limits.blocking)),
    };
    let registry = Arc::clone(registry);
    let running =
        RunningSystem::start(system, registry, Arc::new(services), ports, metrics).await?;
    Ok((running, reader))
}

fn system_config(config: &Config, routers: HashMap<AggregateType, RouterKind>) -> SystemConfig {
    let runtime = &config.runtime;
    SystemConfig {
        node: config.node_name(),
        mode: match config.access.mode {
            AccessModeSetting::Open => AccessMode::Open,
            AccessModeSetting::Jwt => AccessMode::Jwt,
        },
        admission: AdmissionLimits {
            body_bytes_max: config.http.max_body_bytes.as_len(),
            wait_timeout_max: config.wait.max_timeout,
        },
        kernel: KernelLimits {
            decide_timeout: runtime.decide_timeout,
            conflict_retries: runtime.conflict_retries,
            append_timeout: config.storage.append_timeout,
            entry_bytes_max: config.log.max_entry_bytes.as_len(),
            partitions: config.log.partitions,
        },
        routers,
        recent_requests: runtime.recent_requests,
        limits: Limits {
            lane_queue: runtime.lane_queue,
            in_flight: runtime.in_flight,
            waiters: config.wait.max_waiters,
            idle_timeout: runtime.idle_timeout,
            live_aggregates: runtime.max_live_aggregates,
            state_bytes: runtime.max_state_bytes.as_len(),
            shutdown_timeout: runtime.shutdown_timeout,
            drain_delay: config.drain_delay(),
            poll: config.subscriptions.poll,
            ..Limits::default()
        },
        placement: Placement::Arbiters(runtime.arbiter_count()),
        membership: None,
    }
}

async fn open_ports(
    config: &Config,
    registry: &Arc<Registry>,
    verifier: Option<Verifier>,
    health: Arc<StorageHealth>,
    node: &mut Node,
) -> Result<(), NodeError> {
    let stands = Arc::clone(&health);
    let gateway = NodeGateway::new(node.handle(), (*node.reader).clone(), move || {
        stands.is_usable()
    });
    let parts = ServerParts {
        http: http_settings(config),
        admin: AdminSettings {
            bind: config.admin.bind,
            head_timeout: config.http.header_timeout,
            token: config
                .admin
                .token
                .as_ref()
                .and_then(|token| AdminToken::new(token.expose())),
        },
        registry: Arc::clone(registry),
        gateway,
        authenticator: match verifier {
            None => Arc::new(OpenAccess),
            Some(verifier) => Arc::new(TokenAccess(verifier)),
        },
        readiness: Arc::new(NodeReadiness {
            handle: node.handle(),
            health,
        }),
        metrics: node.metrics.clone(),
    };
    let (servers, addresses) = Servers::start(parts).await?;
    node.servers = Some(servers);
    node.addresses = Addresses {
        cluster: node.addresses.cluster,
        ..addresses
    };
    Ok(())
}

fn http_settings(config: &Config) -> HttpSettings {
    let http = &config.http;
    HttpSettings {
        workers: http.worker_count(),
        connections_max: http.max_connections,
        body_bytes_max: http.max_body_bytes.as_len(),
        uri_bytes_max: http.max_url_bytes.as_len(),
        header_bytes_max: http.max_header_bytes.as_len(),
        head_timeout: http.header_timeout,
        body_timeout: http.body_timeout,
        keep_alive: http.idle_timeout,
        stop_timeout: config.runtime.shutdown_timeout,
        wait_timeout: config.wait.timeout,
        wait_timeout_max: config.wait.max_timeout,
        ..HttpSettings::new(http.bind)
    }
}
