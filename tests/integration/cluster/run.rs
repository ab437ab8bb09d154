//! Three nodes under load, each now and then killed, paused beyond its lease or stopped; then the
//! log is checked against what every client has seen.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::nodes::{Place, metric, ready};
use crate::kill::check::{check, unfinished};
use crate::kill::clients::{self, Load, Worker};
use crate::kill::history::History;
use crate::kill::run::{merged, setting, summary};
use crate::storage::databases::Database;
use crate::support::Node;
use crate::support::database::Database as Reader;
use crate::support::wait::until;

const CLIENTS: usize = 24;

/// What happens to a node.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    /// SIGKILL, then a start.
    Killed,
    /// SIGSTOP for longer than its lease, then SIGCONT: it wakes up and doesn't know.
    Paused,
    /// SIGTERM, then a start, as in a rolling upgrade.
    Stopped,
}

/// A service of three nodes.
struct Service {
    places: Vec<Place>,
    nodes: Vec<Option<Node>>,
    known: Vec<watch::Sender<clients::Node>>,
}

impl Service {
    async fn start(database: &Database) -> Self {
        let places: Vec<_> = ["n-1", "n-2", "n-3"]
            .into_iter()
            .map(|name| Place::new(name, database, true))
            .collect();
        let mut service = Self {
            nodes: Vec::new(),
            known: Vec::new(),
            places,
        };
        for place in &service.places {
            let node = place.start().await;
            // All have one life: an attempt whose end nobody knows may run on any of them.
            let known = clients::Node {
                life: 1,
                client: Some(node.client()),
            };
            service.known.push(watch::Sender::new(known));
            service.nodes.push(Some(node));
        }
        service
    }

    async fn suffer(&mut self, at: usize, mishap: Mishap) {
        let Some(node) = self.nodes[at].take() else {
            return;
        };
        match mishap {
            Mishap::Killed => {
                node.kill().await;
                self.restart(at).await;
            }
            Mishap::Stopped => {
                node.stop().await;
                self.restart(at).await;
            }
            Mishap::Paused => {
                node.signal("STOP").await;
                sleep(Duration::from_millis(3500)).await;
                node.signal("CONT").await;
                self.nodes[at] = Some(node);
            }
        }
    }

    async fn restart(&mut self, at: usize) {
        self.known[at].send_modify(|known| known.client = None);
        let node = self.places[at].start().await;
        self.known[at].send_modify(|known| known.client = Some(node.client()));
        self.nodes[at] = Some(node);
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_by_three_nodes_that_die_and_come_back() {
    let mishaps = setting("WOW_MISHAPS").unwrap_or(3);
    let seed = setting("WOW_SEED").unwrap_or_else(rand::random);
    eprintln!("{mishaps} mishaps, seed {seed} (WOW_SEED has the same ones chosen again)");
    let database = Database::postgres().await;
    let mut service = Service::start(&database).await;
    let (history, acknowledged) = load_and_hurt(&mut service, mishaps, seed).await;

    let reader = Reader::open_url(database.url()).await;
    until("the sagas are at rest", async || {
        (unfinished(&reader.log().await) == 0).then_some(())
    })
    .await;
    let mut forwards = 0.0;
    for node in service.nodes.iter().flatten() {
        ready(node).await;
        forwards += metric(node, "wow_forwards_total{outcome=\"answered\"}").await;
    }
    for node in service.nodes.drain(..).flatten() {
        node.stop().await;
    }
    let log = reader.log().await;
    reader.close().await;
    eprintln!(
        "{}, {forwards} forwards",
        summary(&history, &log, &acknowledged)
    );
    let faults = check(&history, &log);
    assert!(
        faults.is_empty(),
        "seed {seed}: {} faults: {faults:#?}",
        faults.len()
    );
    service.places[0].verify().await;
    // A run in which nothing happened has shown nothing.
    assert!(acknowledged.iter().all(|count| *count > 0));
    assert!(forwards > 0.0);
}

/// What clients have seen, and how many commits were acknowledged up to each mishap's end.
async fn load_and_hurt(service: &mut Service, mishaps: u64, seed: u64) -> (History, Vec<u64>) {
    let mut random = StdRng::seed_from_u64(seed);
    let (stop, stopping) = watch::channel(false);
    let nodes = service.known.iter().map(watch::Sender::subscribe).collect();
    let load = Load::new(nodes, stopping);
    let mut workers = JoinSet::new();
    for name in 0..CLIENTS {
        workers.spawn(Worker::new(Arc::clone(&load), name, seed).run());
    }
    let (mut acknowledged, mut before) = (Vec::new(), 0);
    for number in 0..mishaps {
        until("commands are acknowledged", async || {
            (load.acknowledged.load(Ordering::Relaxed) > before + 50).then_some(())
        })
        .await;
        let at = random.random_range(0..service.nodes.len());
        // Each kind comes, whatever the seed; then they come by chance.
        let mishap = match number {
            0 => Mishap::Killed,
            1 => Mishap::Paused,
            2 => Mishap::Stopped,
            _ => [Mishap::Killed, Mishap::Paused, Mishap::Stopped][random.random_range(0..3)],
        };
        eprintln!("n-{} is {mishap:?}", at + 1);
        service.suffer(at, mishap).await;
        let now = load.acknowledged.load(Ordering::Relaxed);
        acknowledged.push(now - before);
        before = now;
    }
    until(
        "commands are acknowledged after the last mishap",
        async || (load.acknowledged.load(Ordering::Relaxed) > before + 50).then_some(()),
    )
    .await;
    stop.send_replace(true);
    (merged(workers.join_all().await), acknowledged)
}
