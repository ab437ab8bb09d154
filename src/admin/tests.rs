#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus::{IntCounter, Registry};
use reqwest::{Client, Method, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;

struct Switch(AtomicBool);

impl Readiness for Switch {
    fn is_ready(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

struct Running {
    address: std::net::SocketAddr,
    switch: Arc<Switch>,
    stopper: AdminStopper,
    server: actix_web::rt::task::JoinHandle<std::io::Result<()>>,
}

fn start(token: Option<&str>) -> Running {
    start_with(token, std::time::Duration::from_secs(5))
}

fn start_with(token: Option<&str>, head_timeout: std::time::Duration) -> Running {
    let metrics = Registry::new();
    let counter = IntCounter::new("wow_commands_total", "commands").unwrap();
    counter.inc_by(7);
    metrics.register(Box::new(counter)).unwrap();
    let switch = Arc::new(Switch(AtomicBool::new(true)));
    let token = token.and_then(AdminToken::new);
    let settings = AdminSettings {
        bind: ([127, 0, 0, 1], 0).into(),
        token,
        head_timeout,
    };
    let bound = AdminServer::bind(settings, metrics, switch.clone()).unwrap();
    let (address, stopper) = (bound.addresses()[0], bound.stopper());
    Running {
        address,
        switch,
        stopper,
        server: actix_web::rt::spawn(bound.run()),
    }
}

impl Running {
    async fn send(&self, method: Method, path: &str, token: Option<&str>) -> Response {
        let request = Client::new().request(method, format!("http://{}{path}", self.address));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.unwrap()
    }

    async fn get(&self, path: &str) -> Response {
        let response = self.send(Method::GET, path, None).await;
        let code = &response.headers()["wow-error-code"];
        assert_eq!(code == "Ok", response.status().is_success(), "{path}");
        response
    }

    async fn stop(self) {
        self.stopper.stop().await;
        self.server.await.unwrap().unwrap();
    }
}

#[actix_web::test]
async fn a_client_that_says_nothing_is_not_waited_for() {
    let running = start_with(None, std::time::Duration::from_millis(100));
    for start in ["", "GET /met"] {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = timeout(
            std::time::Duration::from_secs(20),
            stream.read_to_end(&mut rest),
        );
        let _ = closed.await.expect("it is closed in time");
    }
    running.stop().await;
}

#[actix_web::test]
async fn metrics_are_served_as_prometheus_reads_them() {
    let running = start(None);
    let response = running.get("/metrics").await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; version=0.0.4"
    );
    assert!(
        response
            .text()
            .await
            .unwrap()
            .contains("\nwow_commands_total 7\n")
    );
    running.stop().await;
}

#[actix_web::test]
async fn health_follows_the_node_and_asks_for_no_token() {
    let running = start(Some("s3cret"));
    assert_eq!(running.get("/health/live").await.status(), 200);
    assert_eq!(running.get("/health/ready").await.status(), 200);
    running.switch.0.store(false, Ordering::SeqCst);
    assert_eq!(running.get("/health/live").await.status(), 200);
    let response = running.get("/health/ready").await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.headers()["wow-error-code"], "wow.node.not-ready");
    running.stop().await;
}

#[actix_web::test]
async fn with_a_token_configured_nothing_but_health_opens_without_it() {
    let running = start(Some("s3cret"));
    for path in ["/metrics", "/nothing"] {
        for token in [None, Some("wrong")] {
            let response = running.send(Method::GET, path, token).await;
            assert_eq!(response.status(), 401, "{path}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            assert_eq!(
                response.headers()["wow-error-code"],
                "wow.access.unauthenticated"
            );
        }
    }
    let response = running.send(Method::GET, "/metrics", Some("s3cret")).await;
    assert_eq!(response.status(), 200);
    running.stop().await;
}

#[actix_web::test]
async fn the_admin_port_has_nothing_of_the_public_one() {
    let running = start(None);
    for path in [
        "/",
        "/wow/metadata",
        "/wow/id/global",
        "/v3/api-docs",
        "/swagger-ui/",
        "/account/a/state",
    ] {
        let response = running.get(path).await;
        assert_eq!(response.status(), 404, "{path}");
        let json: serde_json::Value = response.json().await.unwrap();
        assert_eq!(json["errorCode"], "wow.http.not-found");
    }
    for path in ["/wow/command/send", "/account/create_account"] {
        assert_eq!(
            running.send(Method::POST, path, None).await.status(),
            404,
            "{path}"
        );
    }
    let response = running.send(Method::POST, "/metrics", None).await;
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, HEAD");
    running.stop().await;
}
