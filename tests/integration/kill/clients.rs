//! Clients that send commands to whichever life of the node is there, and send them again, with
//! the same request id, after an answer that never came.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::history::{Acknowledged, Answer, Ask, Attempt, History, Moment, Read, Request};
use crate::support::database::Key;
use crate::support::{Answer as HttpAnswer, Client};

/// The node as clients know it: which life, and where; nowhere while it is down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    pub(crate) life: u32,
    pub(crate) client: Option<Client>,
}

/// What the clients share.
#[derive(Debug)]
pub(crate) struct Load {
    /// The nodes: one that is killed and comes back, or several at one time.
    pub(crate) nodes: Vec<watch::Receiver<Node>>,
    pub(crate) stopping: watch::Receiver<bool>,
    moments: AtomicU64,
    /// How many commits were acknowledged.
    pub(crate) acknowledged: AtomicU64,
    accounts: Mutex<Vec<String>>,
}

impl Load {
    pub(crate) fn new(
        nodes: Vec<watch::Receiver<Node>>,
        stopping: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            nodes,
            stopping,
            moments: AtomicU64::new(1),
            acknowledged: AtomicU64::new(0),
            accounts: Mutex::default(),
        })
    }

    fn moment(&self) -> Moment {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }
}

/// One client: one request at a time, until the load stops.
pub(crate) struct Worker {
    load: Arc<Load>,
    name: usize,
    random: StdRng,
    seen: History,
}

impl Worker {
    pub(crate) fn new(load: Arc<Load>, name: usize, seed: u64) -> Self {
        Self {
            load,
            name,
            random: StdRng::seed_from_u64(seed ^ (name as u64 + 1)),
            seen: History::default(),
        }
    }

    /// Sends until the load stops, and gives what was seen.
    pub(crate) async fn run(mut self) -> History {
        while !*self.load.stopping.borrow() {
            if self.random.random_ratio(1, 20) && !self.seen.requests.is_empty() {
                self.repeat().await;
            } else {
                self.request().await;
            }
        }
        self.seen
    }

    fn ask(&mut self) -> Ask {
        let accounts = self.load.accounts.lock();
        let random = &mut self.random;
        match (
            random.random_range(0..10),
            accounts.choose(random),
            accounts.choose(random),
        ) {
            (0..6, Some(from), Some(to)) if from != to => Ask::Prepare {
                from: from.clone(),
                to: to.clone(),
                amount: random.random_range(1..100),
            },
            (6..9, ..) => Ask::Add {
                owner: format!("owner-{}", random.random_range(0..20)),
                product: format!("product-{}", random.random_range(0..5)),
                quantity: random.random_range(1..10),
            },
            _ => {
                let count = self.seen.requests.len();
                let named = random.random_bool(0.5);
                Ask::Create {
                    id: named.then(|| format!("account-{}-{count}", self.name)),
                    balance: random.random_range(0..1000),
                }
            }
        }
    }

    /// A new request, sent until it is answered; a few are given up for lost.
    async fn request(&mut self) {
        let ask = self.ask();
        let mut request = Request {
            id: format!("r-{}-{}", self.name, self.seen.requests.len()),
            ask,
            attempts: Vec::new(),
        };
        let gives_up = self.random.random_ratio(1, 10);
        loop {
            let attempt = self.attempt(&request).await;
            let answer = attempt.answer.clone();
            request.attempts.push(attempt);
            match answer {
                Answer::Committed(acknowledged) => {
                    self.committed(&request.ask, &acknowledged).await;
                    break;
                }
                Answer::Refused(_) => break,
                Answer::Unknown if gives_up => break,
                Answer::Unknown | Answer::TurnedAway => {}
            }
        }
        self.seen.requests.push(request);
    }

    async fn committed(&mut self, ask: &Ask, acknowledged: &Acknowledged) {
        self.load.acknowledged.fetch_add(1, Ordering::Relaxed);
        if matches!(ask, Ask::Create { .. }) {
            let mut accounts = self.load.accounts.lock();
            // A few hundred: some are busy, some not.
            if accounts.len() < 300 {
                accounts.push(acknowledged.key.id.clone());
            }
        }
        if acknowledged.in_snapshot && self.random.random_bool(0.3) {
            self.read(&acknowledged.key).await;
        }
    }

    /// Sends an earlier request again, as a client may that lost its notes.
    async fn repeat(&mut self) {
        let index = self.random.random_range(0..self.seen.requests.len());
        let request = self.seen.requests[index].clone();
        let attempt = self.attempt(&request).await;
        self.seen.requests[index].attempts.push(attempt);
    }

    /// A node that is up, or the next that is: any of several, as behind a balancer.
    async fn node(&mut self) -> (u32, Client) {
        let nodes = &self.load.nodes;
        let first = self.random.random_range(0..nodes.len());
        loop {
            let mut up = (0..nodes.len()).filter_map(|at| {
                let node = nodes[(first + at) % nodes.len()].borrow().clone();
                node.client.map(|client| (node.life, client))
            });
            if let Some(up) = up.next() {
                return up;
            }
            let changes = nodes.iter().map(|node| {
                let mut node = node.clone();
                Box::pin(async move { node.changed().await.is_ok() })
            });
            let is_told = futures_util::future::select_all(changes);
            // Told of it, or in a while: a change between the look and the wait isn't seen.
            let _ = tokio::time::timeout(Duration::from_millis(20), is_told).await;
        }
    }

    async fn attempt(&mut self, request: &Request) -> Attempt {
        let (life, client) = self.node().await;
        let (path, body, id) = http_request(&request.ask);
        let in_snapshot = self.random.random_bool(0.6);
        let mut http = client
            .post(&path, &body)
            .header("Command-Request-Id", &request.id)
            .header(
                "Command-Wait-Stage",
                if in_snapshot { "SNAPSHOT" } else { "PROCESSED" },
            );
        if let Some(id) = id {
            http = http.header("Command-Aggregate-Id", id);
        }
        let sent = self.load.moment();
        let answered = http.try_send().await;
        let ended = self.load.moment();
        let answer = match &answered {
            Ok(answer) => read_answer(answer, in_snapshot),
            Err(error) if error.is_connect() => Answer::TurnedAway,
            Err(_) => Answer::Unknown,
        };
        if matches!(answer, Answer::Unknown | Answer::TurnedAway) {
            self.wait_for_another(life).await;
        }
        Attempt {
            life,
            sent,
            ended,
            answer,
        }
    }

    /// A node that broke off is about to be another; one that is busy may be less so soon.
    async fn wait_for_another(&self, life: u32) {
        if let [node] = &self.load.nodes[..] {
            let mut node = node.clone();
            let another = node.wait_for(|node| node.life != life);
            let _ = tokio::time::timeout(Duration::from_millis(100), another).await;
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn read(&mut self, key: &Key) {
        let (_, client) = self.node().await;
        let path = match key.aggregate_type.as_str() {
            "cart" => format!("/owner/{}/cart/snapshot", key.id),
            _ => format!("/account/{}/snapshot", key.id),
        };
        let sent = self.load.moment();
        let Ok(answer) = client.get(&path).try_send().await else {
            return;
        };
        let version = match answer.status {
            200 => answer.json()["version"]
                .as_i64()
                .expect("a snapshot has a version"),
            404 => 0,
            _ => return,
        };
        let key = key.clone();
        self.seen.reads.push(Read { key, sent, version });
    }
}

/// Path, body, and the id that goes into a header.
fn http_request(ask: &Ask) -> (String, Value, Option<&str>) {
    match ask {
        Ask::Create { id, balance } => (
            "/account/create_account".to_owned(),
            json!({"name": "x", "balance": balance}),
            id.as_deref(),
        ),
        Ask::Prepare { from, to, amount } => (
            format!("/account/{from}/prepare"),
            json!({"to": to, "amount": amount}),
            None,
        ),
        Ask::Add {
            owner,
            product,
            quantity,
        } => (
            format!("/owner/{owner}/cart/add_cart_item"),
            json!({"productId": product, "quantity": quantity}),
            None,
        ),
    }
}

/// What an answer promises.
fn read_answer(answer: &HttpAnswer, in_snapshot: bool) -> Answer {
    match (answer.status, answer.code()) {
        (200, "Ok") => {
            let body = answer.json();
            let text = |field: &str| body[field].as_str().expect("it is a text").to_owned();
            Answer::Committed(Acknowledged {
                key: Key {
                    tenant: text("tenantId"),
                    aggregate_type: text("aggregateName"),
                    id: text("aggregateId"),
                },
                version: body["aggregateVersion"].as_i64().expect("it committed"),
                command_id: text("commandId"),
                own_command_id: text("waitCommandId"),
                duplicate: body["duplicate"] == true,
                in_snapshot,
            })
        }
        (_, "wow.command.busy" | "wow.node.shutting-down") => Answer::TurnedAway,
        (500.., _) => Answer::Unknown,
        (_, code) => Answer::Refused(code.to_owned()),
    }
}
