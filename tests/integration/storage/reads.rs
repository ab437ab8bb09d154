//! Many lanes, one query.

use std::sync::Arc;

use tokio::task::JoinHandle;
use wow::storage::{ReadKind, Storage};
use wow_kernel::id::{RequestId, TenantId};
use wow_kernel::ports::{History, RequestLookup, SnapshotStore, StorageError};

use super::databases::{Database, on_every_database, on_every_server};
use super::support::{Watch, append_versions, begin, key, open_watched, snapshot};

/// Asks the first question and holds storage behind it, asks the others, and lets go: the others
/// have queued by then.
async fn ask_together<T: Send + 'static, F>(
    watch: &Watch,
    count: usize,
    ask: impl Fn(usize) -> F,
) -> Vec<T>
where
    F: Future<Output = Result<T, StorageError>> + Send + 'static,
{
    watch.hold();
    let mut asked: Vec<JoinHandle<_>> = vec![begin(ask(0)).await];
    watch.standing().await;
    for number in 1..count {
        asked.push(begin(ask(number)).await);
    }
    watch.go_on();
    let mut answers = Vec::new();
    for question in asked {
        answers.push(question.await.unwrap().unwrap());
    }
    answers
}

async fn with_accounts(storage: &Arc<Storage>, count: usize) {
    for number in 0..count {
        append_versions(&**storage, &format!("a-{number}"), 2).await;
    }
}

async fn r42_look_ups_from_many_lanes_share_one_query(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    with_accounts(&storage, 50).await;
    let found = ask_together(&watch, 50, |number| {
        let storage = storage.clone();
        async move {
            let request = RequestId::trusted(format!("a-{number}-1"));
            let tenant = TenantId::default_tenant();
            RequestLookup::find(&*storage, &tenant, &key("any").aggregate_type, &request).await
        }
    })
    .await;
    for (number, found) in found.into_iter().enumerate() {
        assert_eq!(found.unwrap().key, key(&format!("a-{number}")));
    }
    let read = watch.read();
    assert_eq!(read.len(), 1, "{read:?}");
    assert_eq!((read[0].kind, read[0].questions), (ReadKind::Request, 49));
    assert_eq!(watch.statements(), 1);
    storage.close().await;
}

async fn r50_many_cold_lanes_are_loaded_by_three_statements(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    with_accounts(&storage, 40).await;
    let snapshots = (0..20)
        .map(|number| snapshot(&format!("a-{number}"), 1, 1))
        .collect();
    SnapshotStore::save(&*storage, snapshots).await.unwrap();
    let histories = ask_together(&watch, 40, |number| {
        let storage = storage.clone();
        async move { History::load(&*storage, &key(&format!("a-{number}"))).await }
    })
    .await;
    for (number, history) in histories.iter().enumerate() {
        let snapshot = history.snapshot.as_ref().map(|snapshot| snapshot.version);
        let tail: Vec<_> = history.tail.iter().map(|commit| commit.version).collect();
        let expected = if number < 20 {
            (Some(1), vec![2])
        } else {
            (None, vec![1, 2])
        };
        assert_eq!((snapshot, tail), expected, "{number}");
    }
    // The snapshots, the requests up to them, and the tails.
    assert_eq!(watch.statements(), 3);
    storage.close().await;
}

async fn r58_second_looks_from_many_lanes_share_their_queries(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    with_accounts(&storage, 30).await;
    let probes = ask_together(&watch, 30, |number| {
        let storage = storage.clone();
        async move {
            let request = (number % 2 == 0).then(|| RequestId::trusted(format!("a-{number}-2")));
            storage
                .probe(&key(&format!("a-{number}")), request.as_ref())
                .await
        }
    })
    .await;
    for (number, probe) in probes.iter().enumerate() {
        assert_eq!(probe.newest_version, 2, "{number}");
        let version = probe.request.as_ref().map(|commit| commit.version);
        assert_eq!(version, (number % 2 == 0).then_some(2), "{number}");
    }
    assert_eq!(watch.statements(), 2);
    storage.close().await;
}

async fn r63_open_waits_are_looked_up_together(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    let snapshots = (0..20)
        .map(|number| snapshot(&format!("a-{number}"), number, 1))
        .collect();
    SnapshotStore::save(&*storage, snapshots).await.unwrap();
    let versions = ask_together(&watch, 10, |number| {
        let storage = storage.clone();
        async move {
            let keys = [key(&format!("a-{number}")), key("none"), key("a-19")];
            storage.versions(&keys).await
        }
    })
    .await;
    for (number, versions) in (0..).zip(versions) {
        assert_eq!(versions, [number, 0, 19]);
    }
    assert_eq!(watch.statements(), 1);
    storage.close().await;
}

on_every_database!(
    r42_look_ups_from_many_lanes_share_one_query,
    r50_many_cold_lanes_are_loaded_by_three_statements,
    r58_second_looks_from_many_lanes_share_their_queries,
    r63_open_waits_are_looked_up_together,
);
