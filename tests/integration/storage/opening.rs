//! Opening a file, and opening it again.

use wow::storage::{OpenError, StorageReader, StorageSettings};
use wow_kernel::ports::{CheckpointStore, CommitLog, History, PartitionHead, SnapshotStore};

use super::databases::{Database, on_every_database, on_every_server};
use super::support::{
    append_versions, checkpoint, commit, folder, key, open, settings, snapshot, url,
};

#[tokio::test]
async fn the_folder_and_the_file_are_created() {
    let folder = folder();
    let deep = folder.path().join("a/b c/ä%20?");
    let deep = deep.parent().unwrap();
    let storage = open(settings(deep)).await.unwrap();
    append_versions(&storage, "a", 1).await;
    storage.close().await;
    assert!(deep.join("wow.db").is_file());
}

async fn everything_is_there_after_opening_again(database: Database) {
    let first = open(database.settings()).await.unwrap();
    append_versions(&first, "a", 3).await;
    SnapshotStore::save(&first, vec![snapshot("a", 2, 2)])
        .await
        .unwrap();
    CheckpointStore::save(&first, checkpoint("snapshot", "a", 2))
        .await
        .unwrap();
    first.close().await;

    let again = open(database.settings()).await.unwrap();
    let history = History::load(&again, &key("a")).await.unwrap();
    assert_eq!(history.snapshot.unwrap().version, 2);
    let tail: Vec<_> = history.tail.iter().map(|commit| commit.version).collect();
    assert_eq!(tail, [3]);
    let partition = commit("a", 1, "").partition;
    let stored = CheckpointStore::load(&again, "snapshot", &[partition])
        .await
        .unwrap();
    assert_eq!(stored, [checkpoint("snapshot", "a", 2)]);

    // Positions go on where they were.
    let receipt = again.append(commit("a", 4, "a-4")).await.unwrap();
    assert_eq!(receipt.position, 4);
    let heads = again.heads(&[partition]).await.unwrap();
    assert_eq!(heads, [PartitionHead { partition, head: 4 }]);
    again.close().await;
}

async fn times_never_go_back_even_over_a_restart(database: Database) {
    let mut last = 0;
    for version in 1..=3 {
        let storage = open(database.settings()).await.unwrap();
        let receipt = storage
            .append(commit("a", version, &version.to_string()))
            .await
            .unwrap();
        assert!(receipt.committed_at >= last);
        last = receipt.committed_at;
        storage.close().await;
    }
}

#[tokio::test]
async fn r70_a_second_node_on_the_same_file_is_refused_until_the_first_is_gone() {
    let folder = folder();
    let first = open(settings(folder.path())).await.unwrap();
    let error = open(settings(folder.path())).await.unwrap_err();
    let OpenError::InUse { holder, .. } = &error else {
        panic!("the file is in use, but: {error}");
    };
    assert_eq!(holder.as_deref(), Some(&*std::process::id().to_string()));
    assert!(
        error.to_string().contains("in use by another node"),
        "{error}"
    );

    // The first goes on as if nothing had been.
    append_versions(&first, "a", 1).await;
    first.close().await;
    open(settings(folder.path())).await.unwrap().close().await;
}

async fn another_partition_count_or_context_is_refused(database: Database) {
    open(database.settings()).await.unwrap().close().await;
    let other = StorageSettings {
        partitions: 32,
        ..database.settings()
    };
    let error = open(other).await.unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::PartitionCount {
                stored: 64,
                configured: 32
            }
        ),
        "{error}"
    );
    let other = StorageSettings {
        context: "shop".to_owned(),
        ..database.settings()
    };
    let error = open(other).await.unwrap_err();
    assert!(matches!(error, OpenError::Context { .. }), "{error}");
    // A refused start holds nothing.
    open(database.settings()).await.unwrap().close().await;
}

async fn an_empty_database_is_refused_where_it_must_not_be_migrated(database: Database) {
    let unmigrated = StorageSettings {
        migrate: false,
        ..database.settings()
    };
    let error = open(unmigrated.clone()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::SchemaBehind(count) if count > 0),
        "{error}"
    );
    open(database.settings()).await.unwrap().close().await;
    open(unmigrated).await.unwrap().close().await;
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_refused_with_its_path() {
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    let error = open(settings(&file)).await.unwrap_err();
    assert!(matches!(error, OpenError::File { .. }), "{error}");
    assert!(
        error.to_string().contains(&*file.to_string_lossy()),
        "{error}"
    );

    std::fs::create_dir(folder.path().join("wow.db")).unwrap();
    let error = open(settings(folder.path())).await.unwrap_err();
    assert!(matches!(error, OpenError::Database(_)), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("wow.db"), "x".repeat(8192)).unwrap();
    let error = open(settings(folder.path())).await.unwrap_err();
    assert!(error.to_string().contains("not a database"), "{error}");
}

#[tokio::test]
async fn a_url_of_an_unknown_database_is_refused_without_its_password() {
    let folder = folder();
    let url = "oracle://wow:hunter2@db/wow".to_owned();
    let other = StorageSettings {
        url,
        ..settings(folder.path())
    };
    let error = open(other).await.unwrap_err().to_string();
    assert!(
        error.contains("oracle") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test]
async fn a_reader_creates_no_file() {
    let folder = folder();
    let missing = StorageReader::open(&url(folder.path()), None).await;
    let missing = missing.unwrap_err();
    assert!(matches!(missing, OpenError::Missing(_)), "{missing}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_closed_file_can_be_copied_by_itself() {
    let folder = folder();
    let storage = open(settings(folder.path())).await.unwrap();
    append_versions(&storage, "a", 3).await;
    assert!(folder.path().join("wow.db-wal").exists());
    storage.close().await;
    assert!(!folder.path().join("wow.db-wal").exists());
}

async fn a_reader_stands_beside_a_running_node(database: Database) {
    let node = open(database.settings()).await.unwrap();
    append_versions(&node, "a", 2).await;
    let reader = StorageReader::open(database.url(), None).await.unwrap();
    assert_eq!(reader.meta().partitions, 64);
    append_versions(&node, "b", 1).await;
    let shown = reader.show(&key("b"), 0, 10).await.unwrap();
    assert_eq!(shown.len(), 1);
    let json = serde_json::to_value(reader.show(&key("a"), 1, 10).await.unwrap()).unwrap();
    assert_eq!(json[0]["version"], 2);
    assert_eq!(json[0]["events"][0]["body"]["amount"], 2);
    assert_eq!(json[0]["result"], serde_json::Value::Null);
    reader.close().await;
    node.close().await;

    // And without one.
    let reader = StorageReader::open(database.url(), None).await.unwrap();
    assert_eq!(reader.show(&key("a"), 0, 10).await.unwrap().len(), 2);
    reader.close().await;
}

on_every_database!(
    everything_is_there_after_opening_again,
    times_never_go_back_even_over_a_restart,
    another_partition_count_or_context_is_refused,
    an_empty_database_is_refused_where_it_must_not_be_migrated,
    a_reader_stands_beside_a_running_node,
);
