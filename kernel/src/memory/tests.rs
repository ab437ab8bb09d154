//! The memory backend against the suites of the ports, and what it promises beyond them.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::Arc;
use std::thread;

use futures_util::FutureExt;

use super::{ManualClock, MemoryStore};
use crate::commit::Commit;
use crate::conformance::{self, Stores, samples};
use crate::id::{PartitionNo, Version};
use crate::ports::{AppendError, AppendReceipt, Clock, CommitLog, History, SnapshotStore};

async fn fresh() -> Stores {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    Stores::of(Arc::new(store)).with_time(move |duration| clock.advance(duration))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_to_the_commit_log() {
    conformance::commit_log::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_to_the_history() {
    conformance::history::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_to_the_request_lookup() {
    conformance::request_lookup::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_to_the_snapshot_store() {
    conformance::snapshot_store::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_to_the_checkpoint_store() {
    conformance::checkpoint_store::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_conforms_to_the_lease_store() {
    conformance::lease_store::suite(fresh).await;
}

fn store() -> (ManualClock, MemoryStore) {
    let clock = ManualClock::new();
    (clock.clone(), MemoryStore::new(Arc::new(clock)))
}

fn append(store: &MemoryStore, commit: Commit) -> Result<AppendReceipt, AppendError> {
    store
        .append(Arc::new(commit))
        .now_or_never()
        .expect("memory never waits")
}

#[test]
fn a_version_that_would_leave_a_gap_is_refused() {
    let (_, store) = store();
    let key = samples::key("a");
    for (newest, gap) in [(0, 2), (0, 0), (0, Version::MAX), (1, 3), (1, 0)] {
        if newest == 1 {
            append(&store, samples::commit(&key, 1, "first")).ok();
        }
        let refused = append(&store, samples::commit(&key, gap, "gap"));
        assert!(
            matches!(refused, Err(AppendError::Refused(_))),
            "{newest}, {gap}: {refused:?}"
        );
    }
    append(&store, samples::commit(&key, 2, "gap")).unwrap();
}

#[test]
fn the_time_of_commits_is_the_clocks_and_never_goes_back() {
    let (clock, store) = store();
    let key = samples::key("a");
    let first = append(&store, samples::commit(&key, 1, "1"))
        .unwrap()
        .committed_at;
    assert_eq!(first, clock.now());

    clock.step_wall(-5_000);
    let second = append(&store, samples::commit(&key, 2, "2"))
        .unwrap()
        .committed_at;
    assert_eq!(second, first, "the wall clock stepped back");

    clock.step_wall(6_000);
    let third = append(&store, samples::commit(&samples::key("b"), 1, "3")).unwrap();
    assert_eq!(third.committed_at, first + 1_000);
}

#[test]
fn a_commit_is_stored_without_a_copy() {
    let (_, store) = store();
    let commit = Arc::new(samples::commit(&samples::key("a"), 1, "first"));
    store
        .append(commit.clone())
        .now_or_never()
        .unwrap()
        .unwrap();
    assert_eq!(Arc::strong_count(&commit), 2);
}

#[test]
fn clones_share_one_store() {
    let (_, store) = store();
    let another_node = store.clone();
    append(&store, samples::commit(&samples::key("a"), 1, "first")).unwrap();
    let late = append(
        &another_node,
        samples::commit(&samples::key("a"), 1, "second"),
    );
    assert_eq!(late, Err(AppendError::VersionConflict));
}

#[test]
fn r80_positions_are_contiguous_whatever_the_threads_do() {
    let (_, store) = store();
    let (partition, keys) = samples::neighbours(4);
    thread::scope(|scope| {
        for key in &keys {
            scope.spawn(|| {
                for version in 1..=2_000 {
                    let request = format!("{}-{version}", key.id);
                    append(&store, samples::commit(key, version, &request)).unwrap();
                }
            });
        }
    });
    let found = read_all(&store, partition);
    assert!((1..=8_000).eq(found.iter().map(|commit| commit.position)));
    assert!(found.is_sorted_by_key(|commit| commit.committed_at));
}

fn read_all(store: &MemoryStore, partition: PartitionNo) -> Vec<Commit> {
    store
        .read_partition(partition, 0, usize::MAX)
        .now_or_never()
        .unwrap()
        .unwrap()
}

#[test]
fn a_snapshot_ahead_of_the_log_has_no_tail() {
    let (_, store) = store();
    let key = samples::key("a");
    append(&store, samples::commit(&key, 1, "first")).unwrap();
    store
        .save(vec![samples::snapshot(&key, 9)])
        .now_or_never()
        .unwrap()
        .unwrap();
    let loaded = store.load(&key).now_or_never().unwrap().unwrap();
    assert_eq!(
        (loaded.tail.len(), loaded.requests.len(), loaded.has_more),
        (0, 1, false)
    );
}
