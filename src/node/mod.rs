//! The node: everything put together. The only place that sees every part.
//!
//! ```text
//! builder     types, services, rules → a running node
//! backend     the ports that the configured storage gives
//! cluster     leases, the channel to other nodes, the internal port
//! gateway     what the HTTP edge needs of the running system
//! routers     which router each aggregate type has
//! servers     the thread that the public and the admin port live on
//! check       what a start refuses before it touches anything
//! health      whether the storage under the node works
//! process     from a process's arguments to its exit code
//! metrics     what storage tells, as metrics
//! read        states, for code in the node's own process
//! settings    what each part is told, out of the configuration
//! maintenance what is done to storage without a node
//! signal      what tells a process to stop
//! ```

mod backend;
mod builder;
mod check;
mod cluster;
mod gateway;
mod health;
mod maintenance;
mod metrics;
mod process;
mod read;
mod routers;
mod servers;
pub mod settings;
mod signal;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use actix::Recipient;
use wow_actors::{Handle, RunningSystem, StopReport, Submit};
use wow_kernel::error::CommandError;
use wow_kernel::model::Aggregate;
use wow_kernel::read::Reader;

pub use builder::{NodeBuilder, NodeError};
pub use check::NotYet;
pub use maintenance::migrate;
pub use process::{ServeError, run};
pub use read::Read;
pub use routers::RouterError;
pub use signal::StopSignal;

use backend::Backend;
use cluster::RunningCluster;
use servers::Servers;

/// Where a node listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The public port; empty where it has none.
    pub http: Vec<SocketAddr>,
    /// The admin port; empty where it has none.
    pub admin: Vec<SocketAddr>,
    /// The internal port; none where the cluster isn't enabled.
    pub cluster: Option<SocketAddr>,
}

/// A line for each: what it is, where, and what is there.
impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for address in &self.http {
            writeln!(f, "http   http://{address}  (API: /swagger-ui/)")?;
        }
        for address in &self.admin {
            writeln!(f, "admin  http://{address}  (/metrics, /health/ready)")?;
        }
        if let Some(address) = self.cluster {
            writeln!(f, "nodes  {address}")?;
        }
        Ok(())
    }
}

/// A running node. Whoever holds it stops it: with [`Node::stop`], or on a signal with
/// [`Node::run_until_stopped`].
#[derive(Debug)]
pub struct Node {
    system: RunningSystem,
    reader: Arc<Reader>,
    servers: Option<Servers>,
    cluster: Option<RunningCluster>,
    backend: Backend,
    metrics: prometheus::Registry,
    addresses: Addresses,
}

impl Node {
    /// Sends commands, and submits requests.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.system.handle()
    }

    /// The recipient to which in-process actors send [`Submit`].
    ///
    /// # Errors
    /// [`CommandError::ShuttingDown`] once the node is gone.
    pub fn admission(&self) -> Result<Recipient<Submit>, CommandError> {
        self.system.handle().admission()
    }

    /// Reads the newest state of an aggregate: `node.read::<Account>("a-1").await?`.
    ///
    /// It answers as any read does: what doesn't exist, is deleted, or is not the caller's to
    /// see, is [`CommandError::NotFound`].
    pub fn read<A: Aggregate>(&self, aggregate_id: impl Into<String>) -> Read<A> {
        Read::new(self.reader(), aggregate_id.into())
    }

    /// Reads states at any version or time, snapshots and commits.
    #[must_use]
    pub fn reader(&self) -> Arc<Reader> {
        Arc::clone(&self.reader)
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Its metrics.
    #[must_use]
    pub fn metrics(&self) -> prometheus::Registry {
        self.metrics.clone()
    }

    /// Runs until SIGTERM or SIGINT, then stops (R34).
    ///
    /// A signal that comes before this is called ends the process where it stands. To be told of
    /// those too, listen first: [`StopSignal::listen`], start, [`Node::run_until`].
    ///
    /// # Errors
    /// When the process can't listen for signals.
    pub async fn run_until_stopped(self) -> std::io::Result<StopReport> {
        Ok(self.run_until(StopSignal::listen()?).await)
    }

    /// Runs until the signal, or not at all where it has come already, then stops (R34).
    pub async fn run_until(self, mut signal: StopSignal) -> StopReport {
        let signal = signal.received().await;
        tracing::info!(signal, "stopping");
        self.stop().await
    }

    /// Stops in order (R34): readiness turns false, commands are taken for `runtime.drain-delay`
    /// more, then refused; those in flight finish, waits are answered, the ports close, storage
    /// last.
    pub async fn stop(self) -> StopReport {
        self.system.announce_stop().await;
        let report = self.system.stop().await;
        if let Some(cluster) = self.cluster {
            cluster.stop().await;
        }
        if let Some(servers) = self.servers {
            servers.stop().await;
        }
        self.backend.close().await;
        tracing::info!(unfinished = report.unfinished, "stopped");
        report
    }
}
