//! `wow log verify`: a clean log is clean, and each kind of damage is found.

mod requests;
mod rows;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;
use wow::storage::{Finding, Report, Step, StorageReader};
use wow_kernel::conformance::PARTITIONS;
use wow_kernel::partition::partition_of;
use wow_kernel::ports::{CheckpointStore, CommitLog, SnapshotStore};
use wow_kernel::registry::Registry;

use super::databases::{Database, on_every_database, on_every_server};
use super::support::{append_versions, checkpoint, commit, key, open, snapshot};

/// Three accounts with snapshots, and a checkpoint.
async fn a_log(database: &Database) {
    let storage = open(database.settings()).await.unwrap();
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

/// Damages rows of a database as no code of ours does.
async fn damage(database: &Database, sql: &str) {
    let rows = database.run(sql).await;
    assert!(rows > 0, "nothing was damaged by: {sql}");
}

async fn verify(database: &Database, registry: Option<&Registry>) -> Report {
    let reader = StorageReader::open(database.url(), None).await.unwrap();
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

async fn a_log_that_nobody_damaged_is_clean(database: Database) {
    a_log(&database).await;
    let report = verify(&database, None).await;
    assert_eq!(report.findings, []);
    let counted = (
        report.entries,
        report.aggregates,
        report.snapshots,
        report.checkpoints,
    );
    assert_eq!(counted, (13, 4, 1, 1));
}

async fn a_log_is_verified_beside_the_node_that_writes_it(database: Database) {
    a_log(&database).await;
    let node = open(database.settings()).await.unwrap();
    append_versions(&node, "e", 2).await;
    let report = verify(&database, None).await;
    assert_eq!(report.findings, []);
    assert_eq!(report.entries, 15);
    node.close().await;
}

/// Damages a fresh log, and checks that just this is found.
async fn assert_found(like: &Database, sql: &str, expected: &[Finding]) {
    let database = like.another().await;
    a_log(&database).await;
    damage(&database, sql).await;
    let report = verify(&database, None).await;
    assert_eq!(report.findings, expected, "{sql}");
}

fn partition_no(id: &str) -> u32 {
    partition_of(&key(id), PARTITIONS).0
}

async fn r80_gaps_and_heads_that_differ_are_found(database: Database) {
    let partition = partition_no("a");
    let head_differs = |head, newest| Finding::HeadDiffers {
        partition,
        head,
        newest,
    };
    let gap = [
        Finding::PositionGap {
            partition,
            expected: 2,
            found: 3,
        },
        Finding::VersionGap {
            aggregate: "(0)/account/a".to_owned(),
            expected: 2,
            found: 3,
        },
    ];
    let of_a = "where aggregate_id = 'a' and version";
    assert_found(
        &database,
        &format!("delete from commit_log {of_a} = 2"),
        &gap,
    )
    .await;
    let shorter = format!("delete from commit_log {of_a} = 4");
    assert_found(&database, &shorter, &[head_differs(4, 3)]).await;
    let raised =
        format!("update log_partition set head = head + 2 where partition_no = {partition}");
    assert_found(&database, &raised, &[head_differs(6, 4)]).await;
    let strayed = format!("update commit_log set partition_no = 64, position = 1 {of_a} = 4");
    let stray = Finding::StrayPartition { entries: 1 };
    assert_found(&database, &strayed, &[head_differs(4, 3), stray]).await;
}

async fn entries_of_another_partition_are_found(database: Database) {
    let misplaced: Vec<_> = (1..=4)
        .map(|version| Finding::Misplaced {
            aggregate: "(0)/account/x".to_owned(),
            version,
            expected: partition_no("x"),
            found: partition_no("a"),
        })
        .collect();
    let renamed = "update commit_log set aggregate_id = 'x' where aggregate_id = 'a'";
    assert_found(&database, renamed, &misplaced).await;
}

async fn r81_a_checkpoint_beyond_the_head_is_found(database: Database) {
    let beyond = Finding::CheckpointBeyondHead {
        subscription: "snapshot".to_owned(),
        partition: partition_no("a"),
        position: 5,
        head: 4,
    };
    assert_found(&database, "update checkpoint set position = 5", &[beyond]).await;
}

async fn odd_rows_are_found_on_every_database(database: Database) {
    let place = format!("partition {} position 2", partition_no("a"));
    let odd = |place: &str, column, reason: &str| Finding::Odd {
        place: place.to_owned(),
        column,
        reason: reason.to_owned(),
    };
    let of_a = "where aggregate_id = 'a' and version = 2";
    for (sql, finding) in [
        (
            format!("update commit_log set request_id = '' {of_a}"),
            odd(&place, "request_id", "it is empty"),
        ),
        (
            format!("update commit_log set space_id = 'a/b' {of_a}"),
            odd(&place, "space_id", "it contains a control character or '/'"),
        ),
    ] {
        assert_found(&database, &sql, &[finding]).await;
    }
    // Negative numbers end no run.
    let database = database.another().await;
    a_log(&database).await;
    damage(&database, "update checkpoint set position = -1").await;
    let report = verify(&database, None).await;
    assert!(
        matches!(
            &report.findings[..],
            [Finding::Odd {
                column: "position",
                ..
            }]
        ),
        "{report:?}"
    );
}

async fn r84_a_snapshot_that_the_log_does_not_know_is_found(database: Database) {
    let aggregate = || "(0)/account/d".to_owned();
    let beyond = Finding::SnapshotBeyondLog {
        aggregate: aggregate(),
        version: 2,
        newest: 1,
    };
    assert_found(&database, "update snapshot set version = 2", &[beyond]).await;
    let misplaced = Finding::SnapshotMisplaced {
        aggregate: aggregate(),
        version: 1,
    };
    assert_found(
        &database,
        "update snapshot set position = position + 1",
        &[misplaced],
    )
    .await;
}

async fn rows_that_cannot_be_read_are_named_and_the_rest_is_looked_at(database: Database) {
    a_log(&database).await;
    let unreadable = "update commit_log set events = '[{' where aggregate_id = 'a' and version = 2";
    damage(&database, unreadable).await;
    damage(&database, "update snapshot set tags = 'none'").await;
    let report = verify(&database, None).await;
    assert_eq!(report.entries, 13);
    let [entry, .., snapshot] = &report.findings[..] else {
        panic!("both have to be found: {report:?}");
    };
    let partition = partition_no("a");
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

/// An account as the log of these tests has it.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Deposit))]
struct Account {
    balance: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    Deposited { amount: u64 },
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
struct Deposit {
    amount: u64,
}

impl Evolve for Account {
    type Event = AccountEvent;

    fn evolve(&mut self, event: &AccountEvent) {
        let AccountEvent::Deposited { amount } = event;
        self.balance += amount;
    }
}

impl Decide<Deposit> for Account {
    async fn decide(
        &self,
        command: &Deposit,
        _context: &DecideContext,
    ) -> Result<Decision<AccountEvent>, Rejection> {
        let amount = command.amount;
        Ok(Decision::event(AccountEvent::Deposited { amount }))
    }
}

/// An account at version 4, with the snapshot that the log gives.
async fn a_replayable_log(database: &Database) -> Registry {
    let storage = open(database.settings()).await.unwrap();
    append_versions(&storage, "a", 4).await;
    let commits = storage
        .read_aggregate(&key("a"), 0, u64::MAX, 10)
        .await
        .unwrap();
    let (first, last) = (&commits[0], &commits[3]);
    let mut snapshot = snapshot("a", 4, last.position);
    snapshot.state = r#"{ "balance": 10 }"#.to_owned();
    snapshot.facts.first_operator = first.principal.clone();
    snapshot.facts.operator = last.principal.clone();
    snapshot.facts.first_event_time = first.committed_at;
    snapshot.facts.event_time = last.committed_at;
    snapshot.facts.event_id = Some(last.command_id);
    SnapshotStore::save(&storage, vec![snapshot]).await.unwrap();
    storage.close().await;
    RegistryBuilder::new("example")
        .register::<Account>()
        .build()
        .unwrap()
}

async fn r84_a_snapshot_is_what_the_log_replayed_gives(database: Database) {
    let registry = a_replayable_log(&database).await;
    let report = verify(&database, Some(&registry)).await;
    assert_eq!((report.findings, report.replayed), (vec![], 1));
}

async fn r84_a_snapshot_that_differs_from_the_log_is_found_with_where(database: Database) {
    for (sql, path) in [
        (
            "update snapshot set state = '{\"balance\":11}'",
            "state.balance",
        ),
        ("update snapshot set deleted = true", "deleted"),
        ("update snapshot set operator = 'mallory'", "operator"),
        (
            "update commit_log set events = replace(events, '3', '4')",
            "state.balance",
        ),
    ] {
        let database = database.another().await;
        let registry = a_replayable_log(&database).await;
        damage(&database, sql).await;
        let report = verify(&database, Some(&registry)).await;
        let differs = Finding::SnapshotDiffers {
            aggregate: "(0)/account/a".to_owned(),
            version: 4,
            path: path.to_owned(),
        };
        assert_eq!(report.findings, [differs], "{sql}");
    }
}

async fn r50_snapshots_of_another_revision_or_an_unknown_type_are_counted_and_not_compared(
    database: Database,
) {
    let registry = a_replayable_log(&database).await;
    damage(
        &database,
        "update snapshot set state_revision = 7, state = 'none'",
    )
    .await;
    let report = verify(&database, Some(&registry)).await;
    assert_eq!((report.findings, report.replayed), (vec![], 0));
    assert_eq!(report.skipped, [("other-state-revision", 1)].into());

    let empty = RegistryBuilder::new("example").build().unwrap();
    let report = verify(&database, Some(&empty)).await;
    assert_eq!(report.skipped, [("type-unknown", 1)].into());
}

async fn r50_a_log_that_cannot_be_replayed_is_found(database: Database) {
    let registry = a_replayable_log(&database).await;
    damage(
        &database,
        "update commit_log set events = replace(events, 'amount', 'sum')",
    )
    .await;
    let report = verify(&database, Some(&registry)).await;
    let [
        Finding::ReplayFailed {
            version: 4, reason, ..
        },
    ] = &report.findings[..]
    else {
        panic!("{report:?}");
    };
    assert!(reason.contains("deposited"), "{reason}");
}

on_every_database!(
    a_log_that_nobody_damaged_is_clean,
    a_log_is_verified_beside_the_node_that_writes_it,
    r80_gaps_and_heads_that_differ_are_found,
    entries_of_another_partition_are_found,
    r81_a_checkpoint_beyond_the_head_is_found,
    odd_rows_are_found_on_every_database,
    r84_a_snapshot_that_the_log_does_not_know_is_found,
    rows_that_cannot_be_read_are_named_and_the_rest_is_looked_at,
    r84_a_snapshot_is_what_the_log_replayed_gives,
    r84_a_snapshot_that_differs_from_the_log_is_found_with_where,
    r50_snapshots_of_another_revision_or_an_unknown_type_are_counted_and_not_compared,
    r50_a_log_that_cannot_be_replayed_is_found,
);
