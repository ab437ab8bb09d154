//! Rows that hold what is never written there: each is found, and none ends the run.

use wow::storage::Finding;

use super::super::databases::Database;
use super::super::support::key;
use super::{a_log, assert_found, damage, partition_no, verify};

fn odd(place: impl Into<String>, column: &'static str, reason: impl Into<String>) -> Finding {
    Finding::Odd {
        place: place.into(),
        column,
        reason: reason.into(),
    }
}

#[tokio::test]
async fn r44_a_unique_key_that_was_dropped_is_found() {
    for name in ["uk_commit_log_version", "uk_commit_log_request"] {
        let database = Database::sqlite().await;
        a_log(&database).await;
        database.run(&format!("drop index {name}")).await;
        let report = verify(&database, None).await;
        assert_eq!(report.findings, [Finding::KeyMissing { key: name }]);
    }
}

#[tokio::test]
async fn r3_r8_texts_that_are_no_ids_are_found_with_their_column() {
    let place = format!("partition {} position 2", partition_no("a"));
    let long = "x".repeat(129);
    for (column, text, reason) in [
        ("request_id", "", "it is empty"),
        ("request_id", &*long, "it is longer than 128 characters"),
        (
            "request_id",
            "a b",
            "it contains a character other than visible ASCII",
        ),
        ("owner_id", " ann", "it begins or ends with a blank"),
        ("owner_id", &long, "it is longer than 128 characters"),
        ("space_id", "a/b", "it contains a control character or '/'"),
        ("principal", "a\tb", "it contains a control character"),
        ("command_type", "", "it is empty"),
        ("origin", "", "it is empty"),
    ] {
        let sql = format!(
            "update commit_log set {column} = '{text}' where aggregate_id = 'a' and version = 2"
        );
        assert_found(
            &Database::sqlite().await,
            &sql,
            &[odd(&*place, column, reason)],
        )
        .await;
    }
    // What the system names its own requests is no fault.
    let database = Database::sqlite().await;
    a_log(&database).await;
    let of_a_saga = "update commit_log set request_id = 'wow:s:example:Saga:1:2:0' \
                     where aggregate_id = 'a' and version = 2";
    damage(&database, of_a_saga).await;
    assert_eq!(verify(&database, None).await.findings, []);
}

#[tokio::test]
async fn a_command_that_committed_twice_is_found() {
    let database = Database::sqlite().await;
    a_log(&database).await;
    let twice = "update commit_log set command_id = '01900000-0000-7000-8000-000000000001' \
                 where aggregate_id in ('a', 'b') and version = 2";
    damage(&database, twice).await;
    let found = Finding::CommandTwice {
        command_id: "01900000-0000-7000-8000-000000000001".to_owned(),
        times: 2,
    };
    assert_eq!(verify(&database, None).await.findings, [found]);
}

#[tokio::test]
async fn times_at_which_nothing_was_written_are_found() {
    let place = format!("partition {} position 4", partition_no("a"));
    for time in [-5, 0, 253_402_300_800_000_i64] {
        let database = Database::sqlite().await;
        a_log(&database).await;
        let sql = format!(
            "update commit_log set committed_at = {time} where aggregate_id = 'a' and version = 4"
        );
        damage(&database, &sql).await;
        let report = verify(&database, None).await;
        let reason = format!("{time} is no time of a commit");
        assert_eq!(report.findings, [odd(&*place, "committed_at", reason)]);
    }
    let snapshot = format!("snapshot of {}", key("d"));
    let never = odd(snapshot, "snapshot_time", "-1 is no time of a commit");
    assert_found(
        &Database::sqlite().await,
        "update snapshot set snapshot_time = -1",
        &[never],
    )
    .await;
}

/// Clocks are set back, and the log is whole all the same.
#[tokio::test]
async fn a_time_that_steps_back_is_a_warning() {
    let database = Database::sqlite().await;
    a_log(&database).await;
    let back = "update commit_log set committed_at = 1000 + version * (version < 4) \
                where aggregate_id = 'a'";
    damage(&database, back).await;
    let report = verify(&database, None).await;
    assert!(report.is_clean(), "{:?}", report.findings);
    let warning = Finding::TimeStepsBack {
        partition: partition_no("a"),
        position: 4,
        time: 1000,
        before: 1003,
    };
    assert!(report.warnings.contains(&warning), "{:?}", report.warnings);
}

#[tokio::test]
async fn r84_a_snapshot_in_another_partition_or_without_a_log_is_found() {
    let (partition, place) = (partition_no("d"), format!("snapshot of {}", key("d")));
    let elsewhere = odd(place, "partition_no", format!("63 instead of {partition}"));
    assert_ne!(partition, 63);
    assert_found(
        &Database::sqlite().await,
        "update snapshot set partition_no = 63",
        &[elsewhere],
    )
    .await;
    let gone = [
        Finding::HeadDiffers {
            partition,
            head: 1,
            newest: 0,
        },
        Finding::SnapshotBeyondLog {
            aggregate: key("d").to_string(),
            version: 1,
            newest: 0,
        },
    ];
    assert_found(
        &Database::sqlite().await,
        "delete from commit_log where aggregate_id = 'd'",
        &gone,
    )
    .await;
}

#[tokio::test]
async fn r81_checkpoints_that_hold_what_is_never_written_are_found_and_the_run_goes_on() {
    let place = |partition: i64| format!("checkpoint of snapshot in partition {partition}");
    let here = i64::from(partition_no("a"));
    for (column, number, partition, reason) in [
        ("position", -1, here, "-1 is negative"),
        ("epoch", -2, here, "-2 is negative"),
        ("generation", -3, here, "-3 is negative"),
        ("partition_no", 64, 64, "this log has no such partition"),
        ("partition_no", -1, -1, "this log has no such partition"),
    ] {
        let database = Database::sqlite().await;
        a_log(&database).await;
        let sql = format!("update checkpoint set {column} = {number}");
        damage(&database, &sql).await;
        // A later step finds what it would have found.
        damage(&database, "update snapshot set version = 2").await;
        let report = verify(&database, None).await;
        let beyond = Finding::SnapshotBeyondLog {
            aggregate: key("d").to_string(),
            version: 2,
            newest: 1,
        };
        let expected = [odd(place(partition), column, reason), beyond];
        assert_eq!(report.findings, expected, "{sql}");
    }
}

#[tokio::test]
async fn r80_heads_and_positions_out_of_their_range_are_found_and_the_run_goes_on() {
    let partition = partition_no("a");
    let place = format!("head of partition {partition}");
    assert_found(
        &Database::sqlite().await,
        &format!("update log_partition set head = -4 where partition_no = {partition}"),
        &[odd(&*place, "head", "-4 is negative")],
    )
    .await;
    assert_found(
        &Database::sqlite().await,
        &format!("delete from log_partition where partition_no = {partition}"),
        &[
            Finding::HeadMissing { partition },
            // Its checkpoint is beyond what isn't there.
            Finding::CheckpointBeyondHead {
                subscription: "snapshot".to_owned(),
                partition,
                position: 4,
                head: 0,
            },
        ],
    )
    .await;
    let differs = Finding::HeadDiffers {
        partition,
        head: 4,
        newest: 3,
    };
    assert_found(
        &Database::sqlite().await,
        "update commit_log set position = -1 where aggregate_id = 'a' and version = 4",
        &[differs, Finding::StrayPartition { entries: 1 }],
    )
    .await;
}
