//! A database server that is killed under load and comes back: nothing acknowledged is lost,
//! nothing is doubled, and storage goes on by itself (R54, R75).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use wow::storage::{Storage, StorageSettings};
use wow_kernel::id::{RequestId, TenantId, Version};
use wow_kernel::ports::{AppendError, CommitLog, RequestLookup};

use super::databases::run;
use super::support::{commit, key, open, settings_of};
use crate::support::server::{Kind, Server};
use crate::support::wait::until;

const APPENDERS: usize = 8;

/// Appends to an aggregate of its own until it is told to stop; the newest acknowledged version.
async fn append(
    storage: Arc<Storage>,
    id: String,
    done: Arc<AtomicU64>,
    stop: watch::Receiver<bool>,
) -> Version {
    let (mut version, mut acknowledged) = (1, 0);
    while !*stop.borrow() {
        let request = format!("{id}-{version}");
        let outcome = storage.append(commit(&id, version, &request)).await;
        let is_there = match outcome {
            Ok(_) => true,
            Err(AppendError::Unavailable(_)) => false,
            // The log tells, once it can be asked: as the kernel does (R54).
            Err(_) => is_in_the_log(&storage, &id, &request).await,
        };
        if is_there {
            acknowledged = version;
            version += 1;
            done.fetch_add(1, Ordering::Relaxed);
        } else {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    acknowledged
}

/// Asks again and again, for the server may be away.
async fn is_in_the_log(storage: &Storage, id: &str, request: &str) -> bool {
    let (tenant, request) = (TenantId::default_tenant(), RequestId::trusted(request));
    let aggregate_type = key(id).aggregate_type;
    loop {
        match storage.find(&tenant, &aggregate_type, &request).await {
            Ok(found) => return found.is_some(),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn killed_under_load(kind: Kind) {
    let server = Server::start(kind).await;
    run(&server.url(), "create database wow").await;
    let own = server.url();
    let url = format!("{}/wow", own.rsplit_once('/').unwrap().0);
    let settings = StorageSettings {
        statement_timeout: Duration::from_secs(2),
        connect_timeout: Duration::from_secs(2),
        ..settings_of(&url)
    };
    let storage = Arc::new(open(settings).await.unwrap());
    let (done, (stop, stopping)) = (Arc::new(AtomicU64::new(0)), watch::channel(false));
    let mut appenders = JoinSet::new();
    for number in 0..APPENDERS {
        let (storage, done, stopping) = (storage.clone(), done.clone(), stopping.clone());
        appenders.spawn(async move {
            let id = format!("account-{number}");
            (id.clone(), append(storage, id, done, stopping).await)
        });
    }
    let grown = |by: u64| {
        let (done, before) = (done.clone(), done.load(Ordering::Relaxed));
        until("appends are acknowledged", async move || {
            (done.load(Ordering::Relaxed) >= before + by).then_some(())
        })
    };
    grown(50).await;
    server.kill().await;
    server.restart().await;
    grown(50).await;
    stop.send_replace(true);
    while let Some(ended) = appenders.join_next().await {
        let (id, acknowledged) = ended.unwrap();
        let commits = storage
            .read_aggregate(&key(&id), 0, Version::MAX, 100_000)
            .await
            .unwrap();
        let versions: Vec<_> = commits.iter().map(|commit| commit.version).collect();
        // One more may be there whose answer nobody has waited for.
        assert!(versions.len() as u64 >= acknowledged, "{id}");
        assert_eq!(
            versions,
            (1..=versions.len() as u64).collect::<Vec<_>>(),
            "{id}"
        );
    }
    storage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r54_postgres_is_killed_under_load_and_nothing_acknowledged_is_lost() {
    killed_under_load(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r54_mysql_is_killed_under_load_and_nothing_acknowledged_is_lost() {
    killed_under_load(Kind::Mysql).await;
}
