//! The internal port: lets in who shows the cluster's token, and serves each peer's connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wow_kernel::ports::PeerHandler;

use super::wire::{self, TlsError};
use super::{CONNECT_TIMEOUT, ClusterSettings, handshake, session};

/// How many connections there are at most: far more than a service has nodes, and few enough that
/// strangers can't exhaust this node.
const CONNECTIONS: usize = 1024;

/// How long accepting pauses after the system has refused.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the internal port can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The address can't be had.
    #[error("can't listen at {address} (cluster.bind): {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Its certificates can't be used.
    #[error("cluster.certificate-file, cluster.key-file, cluster.ca-file: {0}")]
    Tls(#[from] TlsError),
}

/// The internal port, before anybody is let in.
#[derive(Debug)]
pub struct BoundCluster {
    listener: TcpListener,
    address: SocketAddr,
}

/// The internal port.
#[derive(Debug)]
pub struct ClusterServer {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl BoundCluster {
    /// Listens, on the runtime on which this is called.
    ///
    /// # Errors
    /// [`ClusterError`].
    pub async fn bind(address: SocketAddr) -> Result<Self, ClusterError> {
        let failed = |source| ClusterError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets peers in, on a runtime that outlives it.
    #[must_use]
    pub fn serve(
        self,
        runtime: &Handle,
        settings: Arc<ClusterSettings>,
        handler: Arc<dyn PeerHandler>,
    ) -> ClusterServer {
        let stop = CancellationToken::new();
        let task = runtime.spawn(accept(self.listener, settings, handler, stop.clone()));
        ClusterServer { stop, task }
    }
}

impl ClusterServer {
    /// Closes the port and every connection. What peers' commands have begun goes on.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the internal port ended with an error");
        }
    }
}

async fn accept(
    listener: TcpListener,
    settings: Arc<ClusterSettings>,
    handler: Arc<dyn PeerHandler>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection to the internal port failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!(%address, "too many connections to the internal port");
            continue;
        };
        let (settings, handler) = (Arc::clone(&settings), Arc::clone(&handler));
        connections.spawn(async move {
            let _place = place;
            connection(stream, address, &settings, handler).await;
        });
    }
    connections.shutdown().await;
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    settings: &ClusterSettings,
    handler: Arc<dyn PeerHandler>,
) {
    let accepting = timeout(CONNECT_TIMEOUT, wire::accept(stream, settings.tls.as_ref()));
    let mut stream = match accepting.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::warn!(%address, %error, "a caller was not let in");
            return;
        }
        Err(_late) => {
            tracing::warn!(%address, "a caller took too long to begin");
            return;
        }
    };
    let peer = match handshake::answer(&mut stream, settings).await {
        Ok(peer) => peer,
        Err(error) => {
            tracing::warn!(%address, %error, "a caller was not let in");
            return;
        }
    };
    tracing::info!(%peer, %address, "peer connected");
    let error = session::serve(stream, &peer, handler, settings.frame_bytes_max).await;
    tracing::info!(%peer, %address, reason = %error, "peer disconnected");
}
