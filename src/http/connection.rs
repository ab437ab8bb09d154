//! A new connection, up to where it is known which protocol it speaks.
//!
//! HTTP/1 and HTTP/2 share the port and are told apart by their first bytes. actix waits for
//! those without end, so a client that connects and says nothing would hold its place for ever,
//! and enough of them would take all; here that wait has a deadline, and ends when the node stops.

use std::net::SocketAddr;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol};
use actix_server::GracefulShutdownSignal;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt as _, fn_service};
use actix_web::dev::AppConfig;
use actix_web::http::KeepAlive;
use actix_web::web::{self, Data};
use actix_web::{App, Error};
use tokio::net::TcpStream;

use super::activity::{Patience, Watched};
use super::edge::{self, Edge};
use super::settings::HttpSettings;

/// What every HTTP/2 connection begins with, as far as that tells it from any request of HTTP/1.
const PREFACE: &[u8; 12] = b"PRI * HTTP/2";

/// What serves a connection from its first byte to its end; each worker makes one.
pub(super) fn service(
    edge: Data<Edge>,
    settings: &HttpSettings,
    address: SocketAddr,
    stopping: GracefulShutdownSignal,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = DispatchError, InitError = ()>
+ use<> {
    let app = App::new()
        .app_data(edge)
        .default_service(web::to(edge::serve))
        .into_factory()
        .map_err(|error: Error| error.error_response());
    let stops = stopping.clone();
    let http = HttpService::build()
        .keep_alive(KeepAlive::Timeout(settings.keep_alive))
        .client_request_timeout(settings.head_timeout)
        // A client that closes is gone: its wait ends here and holds no place (R66).
        .h1_allow_half_closed(false)
        .local_addr(address)
        .on_connect_ext(|stream: &Watched, data| {
            data.insert(stream.activity());
        })
        .graceful_shutdown_signal(move || {
            let stops = stops.clone();
            async move { stops.notified().await }
        })
        .finish(actix_service::map_config(app, |()| AppConfig::default()));
    let patience = Patience {
        head: settings.head_timeout,
        between: settings.keep_alive,
    };
    fn_service(move |stream: TcpStream| {
        let stopping = stopping.clone();
        async move {
            let protocol = protocol_of(&stream, patience.head, &stopping).await?;
            // Without it, HTTP/2 with one request in flight waits 40 ms for each answer.
            stream.set_nodelay(true).map_err(DispatchError::Io)?;
            let peer = stream.peer_addr().ok();
            Ok((Watched::new(stream, protocol, patience), protocol, peer))
        }
    })
    .and_then(http)
}

/// Looks at the first bytes and takes none of them.
async fn protocol_of(
    stream: &TcpStream,
    head_timeout: Duration,
    stopping: &GracefulShutdownSignal,
) -> Result<Protocol, DispatchError> {
    let mut start = [0; PREFACE.len()];
    tokio::select! {
        biased;
        peeked = stream.peek(&mut start) => peeked.map_err(DispatchError::Io)?,
        () = tokio::time::sleep(head_timeout) => return Err(DispatchError::SlowRequestTimeout),
        () = stopping.notified() => return Err(DispatchError::DisconnectTimeout),
    };
    // What comes in pieces is taken for HTTP/1, whose own deadline holds for it.
    Ok(match &start == PREFACE {
        true => Protocol::Http2,
        false => Protocol::Http1,
    })
}
