//! The thread on which the public and the admin port are served, and their orderly end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use wow_kernel::registry::Registry;

use super::Addresses;
use super::builder::NodeError;
use crate::admin::{AdminServer, AdminSettings, AdminStopper, Readiness};
use crate::http::{Authenticator, Gateway, HttpServer, HttpSettings, Stop, Stopper};

/// What the ports are set up with.
pub(super) struct ServerParts {
    pub(super) http: HttpSettings,
    pub(super) admin: AdminSettings,
    pub(super) registry: Arc<Registry>,
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) authenticator: Arc<dyn Authenticator>,
    pub(super) readiness: Arc<dyn Readiness>,
    pub(super) metrics: prometheus::Registry,
}

/// The ports, and the thread that serves them.
#[derive(Debug)]
pub(super) struct Servers {
    http: Stopper,
    admin: AdminStopper,
    thread: JoinHandle<io::Result<()>>,
}

impl Servers {
    /// Listens on both ports, and serves them on a thread of their own.
    ///
    /// # Errors
    /// [`NodeError`], when an address can't be had or the routes don't fit together.
    pub(super) async fn start(parts: ServerParts) -> Result<(Self, Addresses), NodeError> {
        let (ready, started) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("wow-http".to_owned())
            .spawn(move || {
                actix_web::rt::System::new().block_on(async move {
                    let (http, admin) = match bind(parts) {
                        Ok(bound) => bound,
                        Err(error) => {
                            let _ = ready.send(Err(error));
                            return Ok(());
                        }
                    };
                    let addresses = Addresses {
                        http: http.addresses().to_vec(),
                        admin: admin.addresses().to_vec(),
                        cluster: None,
                    };
                    let _ = ready.send(Ok((http.stopper(), admin.stopper(), addresses)));
                    let (http, admin) = tokio::join!(http.run(), admin.run());
                    http.and(admin)
                })
            })
            .map_err(NodeError::Threads)?;
        let ended = || NodeError::Threads(io::Error::other("the ports' thread ended at start"));
        let (http, admin, addresses) = started.await.map_err(|_| ended())??;
        Ok((
            Self {
                http,
                admin,
                thread,
            },
            addresses,
        ))
    }

    /// Answers what is under way, closes every connection, and ends the thread.
    pub(super) async fn stop(self) {
        self.http.stop(Stop::Graceful).await;
        self.admin.stop().await;
        let thread = self.thread;
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::error!(%error, "a port ended with an error"),
            Ok(Err(_)) | Err(_) => tracing::error!("the ports' thread panicked"),
        }
    }
}

fn bind(
    parts: ServerParts,
) -> Result<(crate::http::BoundServer, crate::admin::BoundAdmin), NodeError> {
    let http = HttpServer::bind(
        parts.http,
        parts.registry,
        parts.gateway,
        parts.authenticator,
    )?;
    let admin = AdminServer::bind(parts.admin, parts.metrics, parts.readiness)?;
    Ok((http, admin))
}
