//! What makes a node a member among others: its leases, and where they are enabled, the channel
//! and the internal port.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Handle;
use wow_actors::MembershipConfig;
use wow_kernel::ports::{LeaseStore, PeerChannel, PeerHandler};

use super::builder::NodeError;
use crate::cluster::{
    BoundCluster, ClusterChannel, ClusterError, ClusterServer, ClusterSettings, ClusterTls,
    ClusterToken, TlsFiles,
};
use crate::config::Config;

/// What a frame of the channel takes beside a command's body: its identity, headers and chain.
const FRAME_OVERHEAD: usize = 1024 * 1024;

/// The channel, and the internal port before anybody is let in.
#[derive(Debug)]
pub(super) struct Cluster {
    settings: Arc<ClusterSettings>,
    bound: BoundCluster,
    channel: Arc<ClusterChannel>,
    runtime: Handle,
}

/// The channel and the internal port of a running node.
#[derive(Debug)]
pub(super) struct RunningCluster {
    server: ClusterServer,
    channel: Arc<ClusterChannel>,
    address: SocketAddr,
}

impl Cluster {
    /// Listens on the internal port, where the cluster is enabled. Its I/O runs on `runtime`.
    ///
    /// # Errors
    /// [`NodeError::Cluster`].
    pub(super) async fn open(config: &Config, runtime: Handle) -> Result<Option<Self>, NodeError> {
        let token = config.cluster.token.as_ref();
        let token = token.and_then(|token| ClusterToken::new(token.expose()));
        // The configuration has no cluster without a token.
        let (true, Some(token)) = (config.cluster.enabled, token) else {
            return Ok(None);
        };
        let files = tls_files(config);
        let tls = files.as_ref().map(ClusterTls::read).transpose();
        let tls = tls.map_err(ClusterError::from)?;
        let address = config.cluster.bind;
        // On the runtime, for a listener belongs to where it is made.
        let binding = runtime.spawn(BoundCluster::bind(address)).await;
        let bound = binding.map_err(|error| NodeError::Threads(error.into()))??;
        let settings = Arc::new(ClusterSettings {
            node: config.node_name(),
            token,
            tls,
            forwards: config.forward.in_flight,
            reply_timeout: config.forward.timeout,
            frame_bytes_max: config.http.max_body_bytes.as_len() + FRAME_OVERHEAD,
        });
        let channel = Arc::new(ClusterChannel::new(Arc::clone(&settings), runtime.clone()));
        Ok(Some(Self {
            settings,
            bound,
            channel,
            runtime,
        }))
    }

    fn address(&self, config: &Config) -> String {
        match &config.cluster.advertise {
            Some(address) => address.as_str().to_owned(),
            None => self.bound.address().to_string(),
        }
    }

    /// Lets other nodes in.
    pub(super) fn serve(self, handler: Arc<dyn PeerHandler>) -> RunningCluster {
        let address = self.bound.address();
        RunningCluster {
            server: self.bound.serve(&self.runtime, self.settings, handler),
            channel: self.channel,
            address,
        }
    }
}

impl RunningCluster {
    /// Where the internal port listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection.
    pub(super) async fn stop(self) {
        self.channel.close();
        self.server.stop().await;
    }
}

/// The files of the channel's TLS; none where it is in plain text.
fn tls_files(config: &Config) -> Option<TlsFiles> {
    let cluster = &config.cluster;
    Some(TlsFiles {
        certificate: cluster.certificate_file.clone()?,
        key: cluster.key_file.clone()?,
        authority: cluster.ca_file.clone()?,
    })
}

/// How a node on shared storage takes part; none where storage is its own.
pub(super) fn membership(
    config: &Config,
    leases: Option<Arc<dyn LeaseStore>>,
    cluster: Option<&Cluster>,
) -> Option<MembershipConfig> {
    let peers = cluster.map(|cluster| {
        let channel: Arc<dyn PeerChannel> = cluster.channel.clone();
        channel
    });
    Some(MembershipConfig {
        leases: leases?,
        address: cluster.map_or_else(String::new, |cluster| cluster.address(config)),
        lease_ttl: config.membership.lease_ttl,
        hand_over_timeout: config.membership.hand_over_timeout,
        peers,
    })
}
