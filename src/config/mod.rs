//! Configuration: one section a file, loaded from layers, checked as a whole, printed without
//! its secrets.
//!
//! Defaults are in the sections' code; over them lie the file, the environment
//! (`WOW__SECTION__KEY`, dashes as underscores) and the command line. Every fault is reported,
//! not only the first. Other parts of the system get their own limits from here and never see
//! the whole.

mod access;
mod admin;
mod arguments;
mod bytes;
mod check;
mod cluster;
mod context;
mod duration;
mod fault;
mod forward;
mod http;
mod kafka;
mod keys;
mod log;
mod membership;
mod node;
mod print;
mod router;
mod runtime;
mod secret;
mod setting;
mod source;
mod storage;
mod subscriptions;
mod telemetry;
#[cfg(test)]
mod tests;
mod wait;

use std::thread;

use wow_kernel::id::NodeName;

pub use access::{AccessConfig, AccessModeSetting};
pub use admin::{ADMIN_TOKEN_VARIABLE, AdminConfig};
pub use arguments::{Misuse, check_overrides, parse_override};
pub use bytes::ByteSize;
pub use cluster::{CLUSTER_TOKEN_VARIABLE, ClusterConfig, HostPort};
pub use context::{ContextConfig, ContextName};
pub use fault::{ConfigError, Fault, Origin};
pub use forward::ForwardConfig;
pub use http::HttpConfig;
pub use kafka::KafkaConfig;
pub use log::LogConfig;
pub use membership::MembershipConfig;
pub use node::NodeConfig;
pub use print::PrintedKey;
pub use router::{RouterConfig, RouterKind};
pub use runtime::RuntimeConfig;
pub use secret::Secret;
pub use setting::Auto;
pub use source::{DEFAULT_FILE, ENVIRONMENT_PREFIX, Sources};
pub use storage::{Backend, STORAGE_PASSWORD_VARIABLE, StorageConfig, StorageUrl, Synchronous};
pub use subscriptions::SubscriptionsConfig;
pub use telemetry::{Endpoint, LogFilter, LogFormat, TelemetryConfig};
pub use wait::WaitConfig;

use keys::{Origins, Reader, Section, Visitor};
use print::Printer;
use secret::{SecretSource, password_fault, token_fault};

/// The environment variable that names a node where `node.name` does not.
pub const NODE_NAME_VARIABLE: &str = "WOW_NODE_NAME";

/// The configuration of a node. Its `Default` is what holds where nothing is set.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The service's bounded context.
    pub context: ContextConfig,
    /// Who this node is.
    pub node: NodeConfig,
    /// The public port, and the limits on every port.
    pub http: HttpConfig,
    /// The port for operators.
    pub admin: AdminConfig,
    /// The internal port.
    pub cluster: ClusterConfig,
    /// Where the log lives.
    pub storage: StorageConfig,
    /// The shape of the log.
    pub log: LogConfig,
    /// Lanes, bounds, stopping.
    pub runtime: RuntimeConfig,
    /// Waiting callers.
    pub wait: WaitConfig,
    /// Leases and hand-over.
    pub membership: MembershipConfig,
    /// Commands sent on.
    pub forward: ForwardConfig,
    /// What follows the log.
    pub subscriptions: SubscriptionsConfig,
    /// Command topics.
    pub kafka: KafkaConfig,
    /// Which node runs what.
    pub router: RouterConfig,
    /// How callers are known.
    pub access: AccessConfig,
    /// What the node tells about itself.
    pub telemetry: TelemetryConfig,
    origins: Origins,
}

impl Config {
    /// Loads and checks a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault of every source.
    pub fn load(sources: &Sources) -> Result<Self, ConfigError> {
        let mut faults = Vec::new();
        let mut config = Self::default();
        let merged = sources.merge(&mut faults);
        let mut reader = Reader::new(&merged);
        config.visit(&mut reader);
        let mut origins = reader.finish(&mut faults);
        config.read_node_name(sources, &mut origins, &mut faults);
        config.read_secrets(sources, &mut faults);
        check::check(&config, &origins, &mut faults);
        config.origins = origins;
        if faults.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::new(faults))
        }
    }

    /// The node's name (R70): the one that is set, else its host's and the public port, which
    /// tell apart the nodes of one machine.
    pub fn node_name(&self) -> NodeName {
        self.node.name.clone().unwrap_or_else(|| {
            let port = self.http.bind.port();
            let host = gethostname::gethostname();
            NodeName::parse(&format!("{}:{port}", host.to_string_lossy()))
                .unwrap_or_else(|_| NodeName::trusted(format!("localhost:{port}")))
        })
    }

    /// How long a stopping node still takes commands (R34).
    pub fn drain_delay(&self) -> std::time::Duration {
        let in_a_cluster = std::time::Duration::from_secs(5);
        self.runtime.drain_delay.unwrap_or_else(|| {
            if self.cluster.enabled {
                in_a_cluster
            } else {
                Default::default()
            }
        })
    }

    /// The configuration as a file, secrets redacted; what is not a default says where it
    /// comes from.
    pub fn print(&self) -> String {
        let mut printer = Printer::new(&self.origins);
        self.clone().visit(&mut printer);
        printer.into_toml()
    }

    /// The same, key by key.
    pub fn printed_keys(&self) -> Vec<PrintedKey> {
        let mut printer = Printer::new(&self.origins);
        self.clone().visit(&mut printer);
        printer.into_keys()
    }

    fn visit(&mut self, visitor: &mut impl Visitor) {
        fn enter<S: Section>(section: &mut S, visitor: &mut impl Visitor) {
            visitor.enter(S::NAME);
            section.visit(visitor);
        }
        enter(&mut self.context, visitor);
        enter(&mut self.node, visitor);
        enter(&mut self.http, visitor);
        enter(&mut self.admin, visitor);
        enter(&mut self.cluster, visitor);
        enter(&mut self.storage, visitor);
        enter(&mut self.log, visitor);
        enter(&mut self.runtime, visitor);
        enter(&mut self.wait, visitor);
        enter(&mut self.membership, visitor);
        enter(&mut self.forward, visitor);
        enter(&mut self.subscriptions, visitor);
        enter(&mut self.kafka, visitor);
        enter(&mut self.router, visitor);
        enter(&mut self.access, visitor);
        enter(&mut self.telemetry, visitor);
    }

    fn read_node_name(
        &mut self,
        sources: &Sources,
        origins: &mut Origins,
        faults: &mut Vec<Fault>,
    ) {
        if self.node.name.is_some() {
            return;
        }
        if let Some(name) = sources.variable(NODE_NAME_VARIABLE, faults) {
            match NodeName::parse(&name) {
                Ok(name) => {
                    self.node.name = Some(name);
                    let origin = Origin::Environment(NODE_NAME_VARIABLE.to_owned());
                    origins.insert("node.name".to_owned(), origin);
                }
                Err(fault) => faults.push(Fault::Unusable {
                    key: NODE_NAME_VARIABLE,
                    advice: format!("the name can't be used: {fault}"),
                }),
            }
        }
    }

    fn read_secrets(&mut self, sources: &Sources, faults: &mut Vec<Fault>) {
        let cluster = SecretSource {
            key: "cluster.token-file",
            file: self.cluster.token_file.as_deref(),
            variable: CLUSTER_TOKEN_VARIABLE,
            fault: token_fault,
        };
        let admin = SecretSource {
            key: "admin.token-file",
            file: self.admin.token_file.as_deref(),
            variable: ADMIN_TOKEN_VARIABLE,
            fault: token_fault,
        };
        let password = SecretSource {
            key: "storage.password-file",
            file: self.storage.password_file.as_deref(),
            variable: STORAGE_PASSWORD_VARIABLE,
            fault: password_fault,
        };
        let cluster = cluster.read(sources, faults);
        let admin = admin.read(sources, faults);
        let password = password.read(sources, faults);
        self.cluster.token = cluster;
        self.admin.token = admin;
        self.storage.password = password;
    }
}

/// How many threads the machine runs at once; one where that can't be found out.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
