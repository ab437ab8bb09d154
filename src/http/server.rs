//! The public server: bound before it runs, so that a port in use is known at the start, and
//! stopped by whoever owns it, never by a signal of its own.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_server::{Server, ServerHandle};
use actix_web::web::Data;
use tokio::net::TcpSocket;
use wow_kernel::registry::Registry;

use super::connection;
use super::edge::Edge;
use super::gateway::{Authenticator, Gateway};
use super::routes::RouteError;
use super::settings::HttpSettings;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Why the server can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address can't be had.
    #[error("can't listen at {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The registry's types make no routes.
    #[error("the types' routes don't fit together: {}", listed(.0))]
    Routes(Vec<RouteError>),
}

fn listed(errors: &[RouteError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// The public port.
#[derive(Debug)]
pub struct HttpServer;

impl HttpServer {
    /// Listens, and makes everything ready to serve; [`BoundServer::run`] serves. It is called
    /// within a tokio runtime, an actix `System` or not; the workers are threads of their own.
    ///
    /// # Errors
    /// [`HttpError`], when the address can't be had, or a request could mean two routes.
    pub fn bind(
        settings: HttpSettings,
        registry: Arc<Registry>,
        gateway: Arc<dyn Gateway>,
        authenticator: Arc<dyn Authenticator>,
    ) -> Result<BoundServer, HttpError> {
        let failed = |source| HttpError::Bind {
            address: settings.bind,
            source,
        };
        let edge = Edge::new(settings.clone(), registry, gateway, authenticator)
            .map_err(HttpError::Routes)?;
        let edge = Data::new(edge);
        let workers = settings.workers.max(1);
        let listener = listen(settings.bind).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop_seconds = settings.stop_timeout.as_millis().div_ceil(1000);
        let builder = Server::build()
            .workers(workers)
            .max_concurrent_connections(settings.connections_max.div_ceil(workers))
            .shutdown_timeout(stop_seconds.try_into().unwrap_or(60))
            .disable_signals();
        let stopping = builder.graceful_shutdown_signal();
        let for_worker = settings.clone();
        let server = builder
            .listen("wow-http", listener, move || {
                connection::service(edge.clone(), &for_worker, address, stopping.clone())
            })
            .map_err(failed)?;
        Ok(BoundServer {
            addresses: vec![address],
            server: server.run(),
        })
    }
}

/// Listens as actix itself would, whose builder doesn't tell which port it got.
fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A node that is started again needn't wait for its old connections to be forgotten.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// A server that listens, and serves once [`BoundServer::run`] is awaited.
#[must_use = "a bound server answers nobody until it runs"]
pub struct BoundServer {
    addresses: Vec<SocketAddr>,
    server: Server,
}

impl std::fmt::Debug for BoundServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundServer")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl BoundServer {
    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What stops it.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            handle: self.server.handle(),
        }
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// What the system says when accepting connections fails for good.
    pub fn run(self) -> impl Future<Output = io::Result<()>> {
        self.server
    }
}

/// Stops a server.
#[derive(Debug, Clone)]
pub struct Stopper {
    handle: ServerHandle,
}

impl Stopper {
    /// Stops serving. A graceful stop takes no new connection, closes idle ones, and waits for
    /// the answers under way, at most [`HttpSettings::stop_timeout`].
    pub async fn stop(&self, how: Stop) {
        self.handle.stop(how == Stop::Graceful).await;
    }
}

/// How a server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Answers under way are finished.
    Graceful,
    /// Connections are cut.
    AtOnce,
}
