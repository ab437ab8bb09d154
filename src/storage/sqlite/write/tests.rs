//! A batch on a real file that is full, read-only, or in somebody else's hands.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tempfile::TempDir;
use uuid::Uuid;
use wow_kernel::commit::{Commit, RecordedEvent};
use wow_kernel::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, RequestId, SpaceId,
    TenantId, Version,
};

use super::super::super::batch::SnapshotRows;
use super::super::super::meta::{self, Meta};
use super::super::super::observer::Unobserved;
use super::super::super::settings::Durability;
use super::*;

/// A writer on a fresh file of four partitions.
async fn writer() -> (SqliteWriter, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteFile {
        path: folder.path().join("wow.db"),
        durability: Durability::Full,
        connect_timeout: Duration::from_secs(5),
        statement_timeout: Duration::from_millis(50),
        observer: Arc::new(Unobserved),
    };
    let lock = FileLock::take(&file.path).unwrap();
    let connection = file.writer().await.unwrap();
    wow_migrations::migrate(&connection).await.unwrap();
    let meta = Meta {
        partitions: 4,
        context: "example".to_owned(),
    };
    meta::settle(&connection, &meta).await.unwrap();
    let turn = Arc::new(Mutex::new(()));
    (SqliteWriter::new(file, connection, 0, lock, turn), folder)
}

fn entry(partition: u32, id: &str, version: Version, body: &str) -> Entry {
    Entry::new(Arc::new(Commit {
        partition: PartitionNo(partition),
        position: 0,
        key: AggregateKey {
            tenant: TenantId::default_tenant(),
            aggregate_type: AggregateType::trusted("account"),
            id: AggregateId::trusted(id),
        },
        version,
        request_id: RequestId::trusted(format!("{id}-{version}")),
        command_id: CommandId(Uuid::nil()),
        command_type: Arc::from("open"),
        principal: Arc::from(""),
        owner: OwnerId::none(),
        space: SpaceId::none(),
        origin: NodeName::trusted("node-1"),
        events: Arc::from([RecordedEvent {
            name: Arc::from("opened"),
            revision: 1,
            body: RawValue::from_string(format!("\"{body}\"")).unwrap(),
        }]),
        result: None,
        headers: BTreeMap::new(),
        committed_at: 0,
    }))
    .unwrap()
}

async fn append(writer: &mut SqliteWriter, entries: &[&Entry]) -> Result<Vec<u64>, BatchFault> {
    let batch = Batch {
        entries: entries.to_vec(),
        snapshots: SnapshotRows::default(),
        checkpoints: Vec::new(),
    };
    let written = writer.execute(&batch).await?;
    Ok(written
        .receipts
        .iter()
        .map(|receipt| receipt.position)
        .collect())
}

async fn run(writer: &mut SqliteWriter, sql: &str) {
    let connection = writer.connection().await.unwrap();
    connection.execute_unprepared(sql).await.unwrap();
}

#[tokio::test]
async fn r54_a_full_disk_is_unavailable_and_leaves_nothing_behind() {
    let (mut writer, _folder) = writer().await;
    assert_eq!(
        append(&mut writer, &[&entry(1, "a", 1, "")]).await,
        Ok(vec![1])
    );
    // SQLite reports a full disk and a full file alike.
    run(&mut writer, "pragma max_page_count = 1").await;
    let large = entry(1, "b", 1, &"x".repeat(1 << 20));
    let fault = append(&mut writer, &[&entry(1, "c", 1, ""), &large])
        .await
        .unwrap_err();
    assert!(
        matches!(&fault, BatchFault::Unavailable(reason) if reason.contains("full")),
        "{fault:?}"
    );

    // Once there is room the writer goes on, at the next position.
    writer.reset().await;
    assert_eq!(append(&mut writer, &[&large]).await, Ok(vec![2]));
    writer.close().await;
}

#[tokio::test]
async fn r54_a_read_only_file_is_unavailable() {
    let (mut writer, _folder) = writer().await;
    run(&mut writer, "pragma query_only = on").await;
    let fault = append(&mut writer, &[&entry(1, "a", 1, "")])
        .await
        .unwrap_err();
    assert!(matches!(fault, BatchFault::Unavailable(_)), "{fault:?}");
    writer.reset().await;
    assert_eq!(
        append(&mut writer, &[&entry(1, "a", 1, "")]).await,
        Ok(vec![1])
    );
    writer.close().await;
}

#[tokio::test]
async fn r54_a_file_that_another_process_keeps_locked_is_unavailable() {
    let (mut writer, _folder) = writer().await;
    let other = writer.file.writer().await.unwrap();
    let immediate = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let holding = other.begin_with_options(immediate).await.unwrap();
    let fault = append(&mut writer, &[&entry(1, "a", 1, "")])
        .await
        .unwrap_err();
    assert!(matches!(fault, BatchFault::Unavailable(_)), "{fault:?}");
    holding.rollback().await.unwrap();
    assert_eq!(
        append(&mut writer, &[&entry(1, "a", 1, "")]).await,
        Ok(vec![1])
    );
    writer.close().await;
}

#[tokio::test]
async fn a_partition_that_the_log_does_not_have_is_refused() {
    let (mut writer, _folder) = writer().await;
    let fault = append(&mut writer, &[&entry(4, "a", 1, "")])
        .await
        .unwrap_err();
    assert!(matches!(fault, BatchFault::Refused(_)), "{fault:?}");
    writer.close().await;
}

#[tokio::test]
async fn r80_positions_follow_the_order_of_arrival_in_each_partition() {
    let (mut writer, _folder) = writer().await;
    // Neither sorted by request nor by partition.
    let entries = [
        (2, "z", 1),
        (1, "m", 1),
        (2, "a", 1),
        (1, "b", 1),
        (2, "z", 2),
        (3, "c", 1),
    ]
    .map(|(partition, id, version)| entry(partition, id, version, ""));
    let entries: Vec<_> = entries.iter().collect();
    assert_eq!(
        append(&mut writer, &entries).await,
        Ok(vec![1, 1, 2, 2, 3, 1])
    );
    let fault = append(&mut writer, &[&entry(1, "n", 1, ""), entries[0]])
        .await
        .unwrap_err();
    assert!(matches!(fault, BatchFault::Taken(_)), "{fault:?}");
    // What was rolled back took no position.
    assert_eq!(
        append(&mut writer, &[&entry(1, "n", 1, "")]).await,
        Ok(vec![3])
    );
    writer.close().await;
}

#[tokio::test]
async fn r44_the_key_that_is_taken_is_named_the_request_before_the_version() {
    let (mut writer, _folder) = writer().await;
    append(&mut writer, &[&entry(1, "a", 1, ""), &entry(1, "a", 2, "")])
        .await
        .unwrap();
    let same = entry(1, "a", 1, "");
    let mut late = Commit::clone(&same.commit);
    late.request_id = RequestId::trusted("late");
    let late = Entry::new(Arc::new(late)).unwrap();
    let fault = append(&mut writer, &[&late]).await.unwrap_err();
    assert_eq!(fault, BatchFault::Taken(UniqueKey::Version));
    let new = entry(1, "b", 1, "");
    let taken = writer.taken(&[&new, &same, &late]).await.unwrap();
    assert_eq!(
        taken,
        [None, Some(UniqueKey::Request), Some(UniqueKey::Version)]
    );
    writer.close().await;
}
