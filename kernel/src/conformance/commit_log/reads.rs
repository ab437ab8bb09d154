//! Reading the log: ranges, pages, and what is not there.

use crate::conformance::Stores;
use crate::conformance::samples::{
    all_partitions, append, append_versions, assert_all_same, commit, everything, key, key_of,
    neighbours, stored,
};
use crate::id::{PartitionNo, Position, Version};

pub(super) async fn a_commit_can_be_read_as_soon_as_it_is_appended(stores: Stores) {
    let log = stores.log();
    for version in 1..=20 {
        let commit = commit(&key("a"), version, &format!("request-{version}"));
        let receipt = append(&*log, &commit).await;
        let expected = [stored(commit, receipt)];
        let found = log
            .read_aggregate(&key("a"), version - 1, version, 1)
            .await
            .unwrap();
        assert_all_same(&found, &expected);
        let partition = expected[0].partition;
        let found = log
            .read_partition(partition, receipt.position - 1, 1)
            .await
            .unwrap();
        assert_all_same(&found, &expected);
        let head = log.heads(&[partition]).await.unwrap()[0].head;
        assert_eq!(head, receipt.position, "head");
    }
}

pub(super) async fn an_aggregate_is_read_in_pages(stores: Stores) {
    let log = stores.log();
    let commits = append_versions(&*log, &key("a"), 25).await;
    for limit in [1, 7, 24, 25, 26] {
        let (mut after, mut found) = (0, Vec::new());
        loop {
            let page = log
                .read_aggregate(&key("a"), after, 100, limit)
                .await
                .unwrap();
            assert!(
                page.len() <= limit,
                "{} commits on a page of {limit}",
                page.len()
            );
            let Some(last) = page.last() else { break };
            after = last.version;
            found.extend(page);
        }
        assert_all_same(&found, &commits);
    }
}

pub(super) async fn an_aggregate_is_read_from_after_to_up_to(stores: Stores) {
    let log = stores.log();
    let commits = append_versions(&*log, &key("a"), 10).await;
    let all = Version::MAX;
    for (after, up_to, limit, expected) in [
        (0, 10, 100, &commits[..]),
        (0, 11, 100, &commits[..]),
        (0, all, 100, &commits[..]),
        (0, all, usize::MAX, &commits[..]),
        (3, 7, 100, &commits[3..7]),
        (3, 7, 2, &commits[3..5]),
        (9, 10, 1, &commits[9..]),
        (4, 5, 100, &commits[4..5]),
        (5, 5, 100, &[]),
        (6, 5, 100, &[]),
        (10, all, 100, &[]),
        (all, all, 100, &[]),
        (0, 0, 100, &[]),
        (0, 10, 0, &[]),
    ] {
        let found = log.read_aggregate(&key("a"), after, up_to, limit).await;
        let found = found.unwrap_or_else(|error| panic!("{after}, {up_to}, {limit}: {error:?}"));
        assert_all_same(&found, expected);
    }
}

pub(super) async fn an_aggregate_is_read_without_its_look_alikes(stores: Stores) {
    let log = stores.log();
    append_versions(&*log, &key("a_"), 3).await;
    append_versions(&*log, &key("ab"), 3).await;
    append_versions(&*log, &key_of("acme", "account", "a"), 3).await;
    append_versions(&*log, &key_of("(0)", "cart", "a"), 3).await;
    let expected = append_versions(&*log, &key("a"), 2).await;
    assert_all_same(&everything(&*log, &key("a")).await, &expected);
    assert_all_same(&everything(&*log, &key("a%")).await, &[]);
}

pub(super) async fn a_partition_is_read_in_pages(stores: Stores) {
    let log = stores.log();
    let (partition, keys) = neighbours(5);
    let mut commits = Vec::new();
    for key in &keys {
        commits.extend(append_versions(&*log, key, 5).await);
    }
    // What other partitions hold must not show.
    for number in 0..20 {
        let elsewhere = key(&format!("elsewhere-{number}"));
        if commit(&elsewhere, 1, "").partition != partition {
            append_versions(&*log, &elsewhere, 1).await;
        }
    }
    for limit in [1, 7, 24, 25, 26, usize::MAX] {
        let (mut after, mut found) = (0, Vec::new());
        loop {
            let page = log.read_partition(partition, after, limit).await.unwrap();
            assert!(
                page.len() <= limit,
                "{} commits on a page of {limit}",
                page.len()
            );
            let Some(last) = page.last() else { break };
            after = last.position;
            found.extend(page);
        }
        assert_all_same(&found, &commits);
    }
    for (after, limit) in [(25, 10), (26, 10), (Position::MAX, 10), (0, 0)] {
        let found = log.read_partition(partition, after, limit).await.unwrap();
        assert_all_same(&found, &[]);
    }
}

pub(super) async fn what_is_not_there_is_read_as_nothing(stores: Stores) {
    let log = stores.log();
    assert_all_same(&everything(&*log, &key("unknown")).await, &[]);
    for partition in all_partitions() {
        let found = log.read_partition(partition, 0, 10).await.unwrap();
        assert_all_same(&found, &[]);
    }
    for head in log.heads(&all_partitions()).await.unwrap() {
        assert_eq!(head.head, 0, "head of partition {}", head.partition);
    }
}

pub(super) async fn heads_answer_for_the_partitions_asked(stores: Stores) {
    let log = stores.log();
    for number in 0..100 {
        append_versions(&*log, &key(&format!("a-{number}")), 1).await;
    }
    assert!(
        log.heads(&[]).await.unwrap().is_empty(),
        "heads of no partitions"
    );

    let mut heads = log.heads(&all_partitions()).await.unwrap();
    heads.sort_by_key(|head| head.partition);
    let partitions: Vec<_> = heads.iter().map(|head| head.partition).collect();
    assert_eq!(partitions, all_partitions(), "partitions with a head");
    assert_eq!(
        heads.iter().map(|head| head.head).sum::<Position>(),
        100,
        "sum of the heads"
    );

    let some = [PartitionNo(41), PartitionNo(7)];
    let mut found = log.heads(&some).await.unwrap();
    found.sort_by_key(|head| head.partition);
    assert_eq!(found, [heads[7], heads[41]], "heads of two partitions");
}
