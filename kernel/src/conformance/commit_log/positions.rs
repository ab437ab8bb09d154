//! Positions: contiguous from 1 in each partition, and in commit order (R80).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::commit::Commit;
use crate::conformance::samples::{
    all_partitions, append, append_versions, assert_all_same, commit, everything_in, key,
    neighbours, refusal, stored,
};
use crate::conformance::together::together;
use crate::conformance::{APPENDERS, Stores};
use crate::id::{AggregateKey, PartitionNo, Position, Version};
use crate::ports::CommitLog;

pub(super) async fn r80_positions_begin_at_1_in_each_partition(stores: Stores) {
    let log = stores.log();
    let mut counted: BTreeMap<PartitionNo, Position> = BTreeMap::new();
    for number in 0..200 {
        let commit = commit(
            &key(&format!("a-{number}")),
            1,
            &format!("request-{number}"),
        );
        let receipt = append(&*log, &commit).await;
        let head = counted.entry(commit.partition).or_default();
        *head += 1;
        assert_eq!(
            receipt.position, *head,
            "position in partition {}",
            commit.partition
        );
    }
}

pub(super) async fn r80_positions_follow_the_order_of_commits(stores: Stores) {
    let log = stores.log();
    let (partition, keys) = neighbours(3);
    let mut expected = Vec::new();
    for version in 1..=5 {
        for key in &keys {
            let commit = commit(key, version, &format!("{}-{version}", key.id));
            let receipt = append(&*log, &commit).await;
            expected.push(stored(commit, receipt));
        }
    }
    assert_all_same(&everything_in(&*log, partition).await, &expected);
}

pub(super) async fn r80_refused_appends_leave_no_hole(stores: Stores) {
    let log = stores.log();
    let (partition, keys) = neighbours(2);
    for version in 1..=20 {
        for key in &keys {
            append(
                &*log,
                &commit(key, version, &format!("{}-{version}", key.id)),
            )
            .await;
            refusal(&*log, &commit(key, version, "late")).await;
            let again = format!("{}-{version}", keys[0].id);
            refusal(&*log, &commit(key, version + 1, &again)).await;
        }
    }
    assert_contiguous(&everything_in(&*log, partition).await, 40);
}

pub(super) async fn r80_positions_are_contiguous_under_many_appenders(stores: Stores) {
    const VERSIONS: Version = 12;
    let log = stores.log();
    // Half of the appenders crowd into one partition, the others spread over all.
    let (_, mut keys) = neighbours(APPENDERS / 2);
    keys.extend((keys.len()..APPENDERS).map(|number| key(&format!("spread-{number}"))));

    let appended = together(keys.into_iter().map(|key| {
        let log = log.clone();
        async move { append_versions(&*log, &key, VERSIONS).await }
    }))
    .await;

    let mut expected: BTreeMap<PartitionNo, Vec<Commit>> = BTreeMap::new();
    for commit in appended.into_iter().flatten() {
        expected.entry(commit.partition).or_default().push(commit);
    }
    for (partition, mut expected) in expected {
        expected.sort_by_key(|commit| commit.position);
        assert_contiguous(&expected, expected.len());
        assert_versions_in_order(&expected);
        assert_all_same(&everything_in(&*log, partition).await, &expected);
    }
}

pub(super) async fn r80_a_reader_never_sees_a_position_before_the_one_below(stores: Stores) {
    const VERSIONS: Version = 40;
    let log = stores.log();
    let (partition, keys) = neighbours(12);
    let total = keys.len() as Position * VERSIONS;

    let done = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(follow(log.clone(), partition, done.clone()));
    together(keys.into_iter().map(|key| {
        let log = log.clone();
        async move { append_versions(&*log, &key, VERSIONS).await }
    }))
    .await;
    done.store(true, Ordering::SeqCst);

    match reader.await {
        Ok(seen) => assert_eq!(seen, total, "positions that the reader has seen"),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Reads a partition while others append to it, as a subscription does, and answers with the last
/// position seen. A position that shows before the one below it would be skipped for ever.
async fn follow(
    log: Arc<dyn CommitLog>,
    partition: PartitionNo,
    done: Arc<AtomicBool>,
) -> Position {
    let mut seen = 0;
    loop {
        let last_look = done.load(Ordering::SeqCst);
        let page = log.read_partition(partition, seen, 100).await.unwrap();
        for commit in &page {
            assert_eq!(commit.position, seen + 1, "the position after {seen}");
            seen = commit.position;
        }
        if last_look && page.is_empty() {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

pub(super) async fn r80_what_a_head_says_can_be_read(stores: Stores) {
    let log = stores.log();
    let (partition, keys) = neighbours(12);
    together(keys.into_iter().map(|key| {
        let log = log.clone();
        async move {
            for version in 1..=10 {
                append_one_and_read_the_head(&*log, partition, &key, version).await;
            }
        }
    }))
    .await;
    let heads = log.heads(&all_partitions()).await.unwrap();
    let head = heads
        .iter()
        .find(|head| head.partition == partition)
        .unwrap();
    assert_eq!(head.head, 120);
}

async fn append_one_and_read_the_head(
    log: &dyn CommitLog,
    partition: PartitionNo,
    key: &AggregateKey,
    version: Version,
) {
    let commit = commit(key, version, &format!("{}-{version}", key.id));
    let receipt = append(log, &commit).await;
    let head = log.heads(&[partition]).await.unwrap()[0].head;
    assert!(
        head >= receipt.position,
        "head {head} behind position {}",
        receipt.position
    );
    let newest = log.read_partition(partition, head - 1, 1).await.unwrap();
    let newest = newest
        .first()
        .unwrap_or_else(|| panic!("head {head} can't be read"));
    assert_eq!(newest.position, head);
}

/// Positions are 1, 2, 3 and so on, to the last.
#[track_caller]
fn assert_contiguous(commits: &[Commit], count: usize) {
    let positions: Vec<_> = commits.iter().map(|commit| commit.position).collect();
    let expected: Vec<_> = (1..=count as Position).collect();
    assert_eq!(positions, expected, "positions");
}

/// Each aggregate's versions are 1, 2, 3 and so on, in the order of positions.
#[track_caller]
fn assert_versions_in_order(commits: &[Commit]) {
    let mut newest: BTreeMap<&AggregateKey, Version> = BTreeMap::new();
    for commit in commits {
        let version = newest.entry(&commit.key).or_default();
        *version += 1;
        assert_eq!(
            commit.version, *version,
            "at position {} of {}",
            commit.position, commit.key
        );
    }
}
