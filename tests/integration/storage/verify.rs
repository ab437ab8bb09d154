//! `wow log verify`: a clean log is clean, and each kind of damage is found.

use std::path::Path;

use sea_orm::{ConnectOptions, ConnectionTrait, Database};
use wow::storage::{Finding, Report, Step, StorageReader};
use wow_kernel::conformance::PARTITIONS;
use wow_kernel::partition::partition_of;
use wow_kernel::ports::{CheckpointStore, CommitLog, SnapshotStore};
use wow_kernel::registry::Registry;

use super::support::{
    append_versions, checkpoint, commit, folder, key, open, settings, snapshot, url,
};

/// Three accounts with snapshots, and a checkpoint.
async fn a_log(folder: &Path) {
    let storage = open(settings(folder)).await.unwrap();
    for id in ["a", "b", "c"] {
        append_versions(&storage, id, 4).await;
    }
    let receipt = storage.append(commit("d", 1, "d-1")).await.unwrap();
    let snapshots = vec![snapshot("d", 1, receipt.position)];
    SnapshotStore::save(&storage, snapshots).await.unwrap();
    CheckpointStore::save(&storage, checkpoint("snapshot", "a", 4))
        .await
        .unwrap();
    storage.close().await;
}

/// Damages a database as no code of ours does.
async fn damage(folder: &Path, sql: &str) {
    let mut options = ConnectOptions::new(url(folder));
    options.sqlx_logging(false);
    let database = Database::connect(options).await.unwrap();
    let done = database.execute_unprepared(sql).await.unwrap();
    assert!(done.rows_affected() > 0, "nothing was damaged by: {sql}");
    database.close().await.unwrap();
}

async fn verify(folder: &Path, registry: Option<&Registry>) -> Report {
    let reader = StorageReader::open(&url(folder)).await.unwrap();
    let mut steps = Vec::new();
    let report = reader
        .verify(registry, &mut |progress| steps.push(progress))
        .await
        .unwrap();
    reader.close().await;
    for step in [
        Step::Files,
        Step::Log,
        Step::Requests,
        Step::Checkpoints,
        Step::Snapshots,
    ] {
        let last = steps
            .iter()
            .rfind(|progress| progress.step == step)
            .unwrap();
        assert!(last.done >= last.total || !report.is_clean(), "{last:?}");
    }
    report
}

#[tokio::test]
async fn a_log_that_nobody_damaged_is_clean() {
    let folder = folder();
    a_log(folder.path()).await;
    let report = verify(folder.path(), None).await;
    assert_eq!(report.findings, []);
    let counted = (
        report.entries,
        report.aggregates,
        report.snapshots,
        report.checkpoints,
    );
    assert_eq!(counted, (13, 4, 1, 1));
}

#[tokio::test]
async fn a_log_is_verified_beside_the_node_that_writes_it() {
    let folder = folder();
    a_log(folder.path()).await;
    let node = open(settings(folder.path())).await.unwrap();
    append_versions(&node, "e", 2).await;
    let report = verify(folder.path(), None).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.entries, 15);
    node.close().await;
}

#[tokio::test]
async fn each_kind_of_damage_is_found() {
    let partition = |id: &str| partition_of(&key(id), PARTITIONS).0;
    let in_a = partition("a");
    let aggregate = || "(0)/account/a".to_owned();
    let damages = [
        (
            format!("delete from commit_log where aggregate_id = 'a' and version = 2"),
            vec![
                Finding::PositionGap {
                    partition: in_a,
                    expected: 2,
                    found: 3,
                },
                Finding::VersionGap {
                    aggregate: aggregate(),
                    expected: 2,
                    found: 3,
                },
            ],
        ),
        (
            format!("delete from commit_log where aggregate_id = 'a' and version = 4"),
            vec![Finding::HeadDiffers {
                partition: in_a,
                head: 4,
                newest: 3,
            }],
        ),
        (
            format!("update log_partition set head = head + 2 where partition_no = {in_a}"),
            vec![Finding::HeadDiffers {
                partition: in_a,
                head: 6,
                newest: 4,
            }],
        ),
        (
            "update commit_log set aggregate_id = 'x' where aggregate_id = 'a'".to_owned(),
            (1..=4)
                .map(|version| Finding::Misplaced {
                    aggregate: "(0)/account/x".to_owned(),
                    version,
                    expected: partition("x"),
                    found: in_a,
                })
                .collect(),
        ),
        (
            "update commit_log set partition_no = 64, position = 1 \
             where aggregate_id = 'a' and version = 4"
                .to_owned(),
            vec![
                Finding::HeadDiffers {
                    partition: in_a,
                    head: 4,
                    newest: 3,
                },
                Finding::StrayPartition { entries: 1 },
            ],
        ),
        (
            "update checkpoint set position = 5".to_owned(),
            vec![Finding::CheckpointBeyondHead {
                subscription: "snapshot".to_owned(),
                partition: in_a,
                position: 5,
                head: 4,
            }],
        ),
        (
            "update snapshot set version = 2".to_owned(),
            vec![Finding::SnapshotBeyondLog {
                aggregate: "(0)/account/d".to_owned(),
                version: 2,
                newest: 1,
            }],
        ),
        (
            "update snapshot set position = position + 1".to_owned(),
            vec![Finding::SnapshotMisplaced {
                aggregate: "(0)/account/d".to_owned(),
                version: 1,
            }],
        ),
    ];
    for (sql, expected) in damages {
        let folder = folder();
        a_log(folder.path()).await;
        damage(folder.path(), &sql).await;
        let report = verify(folder.path(), None).await;
        assert_eq!(report.findings, expected, "{sql}");
    }
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_named_and_the_rest_is_looked_at() {
    let folder = folder();
    a_log(folder.path()).await;
    let unreadable = "update commit_log set events = '[{' where aggregate_id = 'a' and version = 2";
    damage(folder.path(), unreadable).await;
    damage(folder.path(), "update snapshot set tags = 'none'").await;
    let report = verify(folder.path(), None).await;
    assert_eq!(report.entries, 13);
    let [entry, .., snapshot] = &report.findings[..] else {
        panic!("both have to be found: {report:?}");
    };
    let partition = partition_of(&key("a"), PARTITIONS).0;
    assert!(
        matches!(entry, Finding::EntryUnreadable { partition: found, position: 2, .. }
            if *found == partition),
        "{entry}"
    );
    assert!(
        matches!(snapshot, Finding::SnapshotUnreadable { .. }),
        "{snapshot}"
    );
}
