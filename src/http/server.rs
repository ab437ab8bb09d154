//! The public server: bound before it runs, so that a port in use is known at the start, and
//! stopped by whoever owns it, never by a signal of its own.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::dev::{Server, ServerHandle};
use actix_web::web::{self, Data};
use actix_web::{App, http::KeepAlive};
use wow_kernel::registry::Registry;

use super::edge::{self, Edge};
use super::gateway::{Authenticator, Gateway};
use super::routes::RouteError;
use super::settings::HttpSettings;

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
        let server = actix_web::HttpServer::new(move || {
            App::new()
                .app_data(edge.clone())
                .default_service(web::to(edge::serve))
        })
        .workers(workers)
        .max_connections(settings.connections_max.div_ceil(workers))
        // Without it, HTTP/2 with one request in flight waits 40 ms for each answer.
        .tcp_nodelay(true)
        .keep_alive(KeepAlive::Timeout(settings.keep_alive))
        .client_request_timeout(settings.head_timeout)
        // A client that closes is gone: its wait ends here and holds no place (R66).
        .h1_allow_half_closed(false)
        .shutdown_timeout(
            settings
                .stop_timeout
                .as_millis()
                .div_ceil(1000)
                .try_into()
                .unwrap_or(60),
        )
        .disable_signals()
        .bind_auto_h2c(settings.bind)
        .map_err(failed)?;
        let addresses = server.addrs();
        Ok(BoundServer {
            addresses,
            server: server.run(),
        })
    }
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
