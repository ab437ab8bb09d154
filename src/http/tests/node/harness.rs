//! A running system on the memory backend behind a real port.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use wow_actors::{
    BlockingPool, Limits, NodeClock, NodeRandom, Placement, Ports, RunningSystem, SystemConfig,
};
use wow_kernel::access::AccessMode;
use wow_kernel::admission::AdmissionLimits;
use wow_kernel::execute::{KernelLimits, Loader};
use wow_kernel::id::NodeName;
use wow_kernel::memory::MemoryStore;
use wow_kernel::model::Services;
use wow_kernel::ports::{Authorizer, Unobserved};
use wow_kernel::read::Reader;

use crate::http::fixture::{OneToken, registry, settings};
use crate::http::{HttpServer, NodeGateway, Stop, Stopper};

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

pub(super) struct Node {
    pub(super) base: String,
    pub(super) client: Client,
    pub(super) stopper: Stopper,
    pub(super) server: actix_web::rt::task::JoinHandle<io::Result<()>>,
    pub(super) system: RunningSystem,
}

pub(super) async fn start() -> Node {
    let clock = Arc::new(NodeClock::new());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let ports = Ports {
        log: store.clone(),
        history: store.clone(),
        requests: store.clone(),
        snapshots: store.clone(),
        checkpoints: store.clone(),
        authorizer: Arc::new(DeclaredRules),
        clock,
        random: Arc::new(NodeRandom),
        isolation: Arc::new(BlockingPool::new(tokio::runtime::Handle::current(), 1)),
    };
    let config = SystemConfig {
        node: NodeName::trusted("n-1"),
        mode: AccessMode::Open,
        admission: AdmissionLimits {
            body_bytes_max: settings().body_bytes_max,
            wait_timeout_max: Duration::from_secs(300),
        },
        kernel: KernelLimits::default(),
        routers: std::collections::HashMap::new(),
        recent_requests: 256,
        limits: Limits::default(),
        placement: Placement::Arbiters(1),
        membership: None,
    };
    let (services, metrics) = (Arc::new(Services::default()), prometheus::Registry::new());
    let system = RunningSystem::start(config, registry(), services, ports, &metrics)
        .await
        .unwrap();
    let reader = Reader {
        registry: registry(),
        loader: Loader {
            history: store.clone(),
            log: store.clone(),
            observer: Arc::new(Unobserved),
            recent_requests: 0,
        },
        snapshots: store,
        authorizer: Arc::new(DeclaredRules),
        mode: AccessMode::Open,
    };
    let gateway = NodeGateway::new(system.handle(), reader, || true);
    let bound = HttpServer::bind(settings(), registry(), gateway, Arc::new(OneToken)).unwrap();
    Node {
        base: format!("http://{}", bound.addresses()[0]),
        client: Client::new(),
        stopper: bound.stopper(),
        server: actix_web::rt::spawn(bound.run()),
        system,
    }
}

impl Node {
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, path).json(body)
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub(super) async fn create(&self, id: &str) -> Value {
        let body = json!({"name": "source", "balance": 100});
        let request = self.post("/account/create_account", &body);
        let (status, result) = answer(request.header("Command-Aggregate-Id", id)).await;
        assert_eq!(status, 200, "{result}");
        result
    }

    pub(super) async fn stop(self) {
        self.stopper.stop(Stop::Graceful).await;
        self.server.await.unwrap().unwrap();
        assert_eq!(self.system.stop().await.unfinished, 0);
    }
}

/// Status and body of an answer, whose header and body must tell the same code.
pub(super) async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let code = response.headers()["wow-error-code"]
        .to_str()
        .unwrap()
        .to_owned();
    let body: Value = response.json().await.unwrap();
    if status != 200 {
        assert_eq!(body["errorCode"], code.as_str());
    }
    (status, body)
}

/// Status and code of a request that must fail.
pub(super) async fn failure(request: RequestBuilder) -> (u16, String) {
    let (status, body) = answer(request).await;
    (
        status,
        body["errorCode"].as_str().unwrap_or("none").to_owned(),
    )
}
