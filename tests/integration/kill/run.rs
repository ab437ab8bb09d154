//! Starts the node, loads it, kills it, and starts it again; then the log is checked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::check::{check, unfinished};
use super::clients::{self, Load, Worker};
use super::history::History;
use crate::support::database::{Database, Log};
use crate::support::process::Starting;
use crate::support::wait::until;
use crate::support::{Folder, Node};

const CLIENTS: usize = 32;

pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("it is a whole number"))
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_and_nothing_is_doubled() {
    let kills = setting("WOW_KILLS").unwrap_or(5);
    let seed = setting("WOW_SEED").unwrap_or_else(rand::random);
    eprintln!("{kills} kills, seed {seed} (WOW_SEED has the same moments chosen again)");
    let folder = Folder::new();
    let (history, lives) = load_and_kill(&folder, kills, seed).await;

    let database = Database::open(&folder.database()).await;
    let log = database.log().await;
    database.close().await;
    eprintln!("{}", summary(&history, &log, &lives));
    let faults = check(&history, &log);
    assert!(
        faults.is_empty(),
        "seed {seed}: {} faults: {faults:#?}",
        faults.len()
    );
    verify(&folder).await;
    // A run in which nothing happened has shown nothing.
    assert!(lives.iter().any(|acknowledged| *acknowledged > 0));
}

/// Kills a node under load, so many times. What clients have seen, and how many commits each
/// life acknowledged.
async fn load_and_kill(folder: &Folder, kills: u64, seed: u64) -> (History, Vec<u64>) {
    let mut random = StdRng::seed_from_u64(seed);
    let (publish, node) = watch::channel(clients::Node::default());
    let (stop, stopping) = watch::channel(false);
    let load = Load::new(vec![node], stopping);
    let mut workers = JoinSet::new();
    for name in 0..CLIENTS {
        workers.spawn(Worker::new(Arc::clone(&load), name, seed).run());
    }
    let (begun, mut lives, mut before) = (Instant::now(), Vec::new(), 0);
    for life in 1..=kills {
        live_and_die(folder, &publish, &load, &mut random).await;
        let now = load.acknowledged.load(Ordering::Relaxed);
        lives.push(now - before);
        before = now;
        if life % 10 == 0 {
            eprintln!(
                "{life} kills, {now} commits acknowledged, {:?}",
                begun.elapsed()
            );
        }
    }
    let last = Node::start(folder).await;
    publish.send_modify(|node| {
        node.life += 1;
        node.client = Some(last.client());
    });
    sleep(Duration::from_millis(300)).await;
    stop.send_replace(true);
    let seen = workers.join_all().await;
    lives.push(load.acknowledged.load(Ordering::Relaxed) - before);
    let database = Database::open(&folder.database()).await;
    until("the sagas are at rest", async || {
        (unfinished(&database.log().await) == 0).then_some(())
    })
    .await;
    database.close().await;
    last.stop().await;
    (merged(seen), lives)
}

/// One life of the node, ended at a moment by chance: under load, or while it starts.
async fn live_and_die(
    folder: &Folder,
    publish: &watch::Sender<clients::Node>,
    load: &Load,
    random: &mut StdRng,
) {
    let mut starting = Starting::spawn(folder, &[]);
    if random.random_ratio(1, 5) {
        let lifetime = Duration::from_millis(random.random_range(0..150));
        if timeout(lifetime, starting.listens()).await.is_err() {
            starting.kill().await;
            return;
        }
        starting.kill().await;
        return;
    }
    let (http, admin) = starting
        .listens()
        .await
        .expect("a node starts after any kill");
    let node = starting.into_node(http, admin);
    publish.send_modify(|known| {
        known.life += 1;
        known.client = Some(node.client());
    });
    // Under load, however slow the machine: the moment is by chance from the first answer on.
    let before = load.acknowledged.load(Ordering::Relaxed);
    until("a command is acknowledged", async || {
        (load.acknowledged.load(Ordering::Relaxed) > before).then_some(())
    })
    .await;
    sleep(Duration::from_millis(random.random_range(0..1000))).await;
    node.kill().await;
    publish.send_modify(|known| known.client = None);
}

pub(crate) fn merged(seen: Vec<History>) -> History {
    let mut all = History::default();
    for mut one in seen {
        all.requests.append(&mut one.requests);
        all.reads.append(&mut one.reads);
    }
    all
}

/// Has the node's own check look at the file too.
async fn verify(folder: &Folder) {
    let output = folder.wow(&["log", "verify"]).await;
    assert!(output.status.success(), "{output:?}");
}

pub(crate) fn summary(history: &History, log: &Log, lives: &[u64]) -> String {
    let attempts = history
        .requests
        .iter()
        .map(|request| request.attempts.len());
    format!(
        "{} lives, {} requests in {} attempts, {} commits acknowledged, {} in the log, {} reads",
        lives.len(),
        history.requests.len(),
        attempts.sum::<usize>(),
        lives.iter().sum::<u64>(),
        log.rows.len(),
        history.reads.len(),
    )
}
