//! The server of the admin port, and the few paths it has.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::http::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::http::{KeepAlive, Method, StatusCode};
use actix_web::web::{self, Data};
use actix_web::{App, HttpRequest, HttpResponse};
use prometheus::{Encoder, Registry, TextEncoder};

use super::token::AdminToken;

/// More connections than scrapers and probes need.
const CONNECTIONS_MAX: usize = 64;

/// The header with the error's code, on every answer as on the public port.
const ERROR_CODE: &str = "Wow-Error-Code";
/// The code of an answer without error.
const OK: &str = "Ok";

/// The settings of the admin port.
#[derive(Debug, Clone)]
pub struct AdminSettings {
    /// Where to listen; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The token to ask for, before all but health.
    pub token: Option<AdminToken>,
    /// How long a client may take to send a request's head.
    pub head_timeout: Duration,
}

/// Whether the node runs what it owns.
pub trait Readiness: Send + Sync {
    /// Whether requests should be sent here.
    fn is_ready(&self) -> bool;
}

/// Why the admin port can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address can't be had.
    #[error("can't listen at {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

struct Admin {
    token: Option<AdminToken>,
    metrics: Registry,
    readiness: Arc<dyn Readiness>,
}

/// The admin port.
#[derive(Debug)]
pub struct AdminServer;

impl AdminServer {
    /// Listens; [`BoundAdmin::run`] serves.
    ///
    /// # Errors
    /// [`AdminError`], when the address can't be had.
    pub fn bind(
        settings: AdminSettings,
        metrics: Registry,
        readiness: Arc<dyn Readiness>,
    ) -> Result<BoundAdmin, AdminError> {
        let address = settings.bind;
        let failed = |source| AdminError::Bind { address, source };
        let admin = Data::new(Admin {
            token: settings.token,
            metrics,
            readiness,
        });
        let server = actix_web::HttpServer::new(move || {
            App::new()
                .app_data(admin.clone())
                .default_service(web::to(serve))
        })
        .workers(1)
        .max_connections(CONNECTIONS_MAX)
        .tcp_nodelay(true)
        // A scrape is rare, and between two requests actix waits for a begun head without end.
        .keep_alive(KeepAlive::Disabled)
        .client_request_timeout(settings.head_timeout)
        .h1_allow_half_closed(false)
        .shutdown_timeout(1)
        .disable_signals()
        .bind(address)
        .map_err(failed)?;
        let addresses = server.addrs();
        Ok(BoundAdmin {
            addresses,
            server: server.run(),
        })
    }
}

/// An admin port that listens, and serves once [`BoundAdmin::run`] is awaited.
#[must_use = "a bound port answers nobody until it runs"]
pub struct BoundAdmin {
    addresses: Vec<SocketAddr>,
    server: Server,
}

impl fmt::Debug for BoundAdmin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundAdmin")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl BoundAdmin {
    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What stops it.
    pub fn stopper(&self) -> AdminStopper {
        AdminStopper {
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

/// Stops the admin port.
#[derive(Debug, Clone)]
pub struct AdminStopper {
    handle: ServerHandle,
}

impl AdminStopper {
    /// Stops serving, after the answers under way.
    pub async fn stop(&self) {
        self.handle.stop(true).await;
    }
}

async fn serve(request: HttpRequest, admin: Data<Admin>) -> HttpResponse {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match (request.uri().path(), reads) {
        ("/health/live", true) => health(true),
        ("/health/ready", true) => health(admin.readiness.is_ready()),
        _ if !may_enter(&admin, &request) => refuse(
            StatusCode::UNAUTHORIZED,
            "wow.access.unauthenticated",
            "this port asks for its bearer token",
        ),
        ("/metrics", true) => metrics(&admin.metrics),
        ("/health/live" | "/health/ready" | "/metrics", false) => refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "wow.http.method-not-allowed",
            "this path takes GET, HEAD",
        ),
        _ => refuse(
            StatusCode::NOT_FOUND,
            "wow.http.not-found",
            "there is nothing at this path",
        ),
    }
}

fn may_enter(admin: &Admin, request: &HttpRequest) -> bool {
    let carried = request
        .headers()
        .get(AUTHORIZATION)
        .map(HeaderValue::as_bytes);
    admin
        .token
        .as_ref()
        .is_none_or(|token| token.is_carried_by(carried))
}

fn health(is_up: bool) -> HttpResponse {
    if !is_up {
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        return refuse(unavailable, "wow.node.not-ready", "the node isn't ready");
    }
    let json = (CONTENT_TYPE, "application/json");
    HttpResponse::Ok()
        .insert_header((ERROR_CODE, OK))
        .insert_header(json)
        .body(r#"{"status":"UP"}"#)
}

fn metrics(registry: &Registry) -> HttpResponse {
    let encoder = TextEncoder::new();
    let mut text = Vec::with_capacity(16 << 10);
    if let Err(error) = encoder.encode(&registry.gather(), &mut text) {
        tracing::error!(%error, "the metrics can't be written");
        let failed = StatusCode::INTERNAL_SERVER_ERROR;
        return refuse(
            failed,
            "wow.node.internal",
            "the node failed; its log says how",
        );
    }
    HttpResponse::Ok()
        .insert_header((ERROR_CODE, OK))
        .insert_header((CONTENT_TYPE, encoder.format_type()))
        .body(text)
}

/// An error as clients of the public port know it; the texts need no escapes.
fn refuse(status: StatusCode, code: &'static str, message: &'static str) -> HttpResponse {
    let body = format!(
        r#"{{"errorCode":"{code}","errorMsg":"{message}","bindingErrors":[],"succeeded":false}}"#
    );
    let mut response = HttpResponse::build(status);
    response.insert_header((ERROR_CODE, code));
    match status {
        StatusCode::UNAUTHORIZED => response.insert_header((WWW_AUTHENTICATE, "Bearer")),
        StatusCode::METHOD_NOT_ALLOWED => response.insert_header((ALLOW, "GET, HEAD")),
        StatusCode::SERVICE_UNAVAILABLE => response.insert_header((RETRY_AFTER, "1")),
        _ => &mut response,
    };
    response
        .insert_header((CONTENT_TYPE, "application/json"))
        .body(body)
}
