//! What goes into one transaction, and what becomes of it.

use std::sync::Arc;

use tokio::task::JoinHandle;
use wow::storage::{BatchOutcome, QueueLimits, Storage, StorageSettings};
use wow_kernel::commit::Commit;
use wow_kernel::ports::{
    AppendError, AppendReceipt, CheckpointStore, CommitLog, SnapshotStore, StorageError,
};

use super::databases::{Database, on_every_database, on_every_server};
use super::support::{
    Watch, append_versions, begin, checkpoint, commit, folder, key, open_watched, settings,
    snapshot,
};

type Outcome = Result<AppendReceipt, AppendError>;

async fn queue(storage: &Arc<Storage>, commit: Arc<Commit>) -> JoinHandle<Outcome> {
    let storage = storage.clone();
    begin(async move { storage.append(commit).await }).await
}

/// Holds the writer, and leaves it with nothing queued.
async fn hold(storage: &Arc<Storage>, watch: &Watch) {
    watch.hold();
    queue(storage, commit("holder", 1, "holder")).await;
    watch.standing().await;
}

async fn outcomes(tasks: Vec<JoinHandle<Outcome>>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn what_queued_while_a_batch_committed_goes_in_as_one_transaction(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    hold(&storage, &watch).await;
    let mut appends = Vec::new();
    for number in 0..20 {
        let id = format!("a-{number}");
        appends.push(queue(&storage, commit(&id, 1, &id)).await);
    }
    let (saves, moves) = (storage.clone(), storage.clone());
    let snapshots = vec![
        snapshot("s", 1, 1),
        snapshot("t", 1, 1),
        snapshot("s", 2, 2),
    ];
    let saved = begin(async move { SnapshotStore::save(&*saves, snapshots).await }).await;
    let to = checkpoint("snapshot", "a", 7);
    let moved = begin(async move { CheckpointStore::save(&*moves, to).await }).await;
    watch.go_on();

    for outcome in outcomes(appends).await {
        outcome.unwrap();
    }
    saved.await.unwrap().unwrap();
    assert!(moved.await.unwrap().unwrap());
    let written = watch.written();
    assert_eq!(written.len(), 1, "{written:?}");
    // Of the two snapshots of one aggregate the newer is written.
    let batch = &written[0];
    assert_eq!(
        (batch.entries, batch.snapshots, batch.checkpoints),
        (20, 2, 1)
    );
    storage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_takes_a_statement_for_its_heads_and_few_for_its_rows() {
    let folder = folder();
    let (storage, watch) = open_watched(settings(folder.path())).await;
    hold(&storage, &watch).await;
    let mut appends = Vec::new();
    for number in 0..85 {
        let id = format!("a-{number}");
        appends.push(queue(&storage, commit(&id, 1, &id)).await);
    }
    watch.go_on();
    for outcome in outcomes(appends).await {
        outcome.unwrap();
    }
    let written = watch.written();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(
        (written[0].entries, written[0].outcome),
        (85, BatchOutcome::Committed)
    );
    // One for the heads, and 64 + 16 + 4 + 1 rows.
    assert_eq!(watch.statements(), 5);
    storage.close().await;
}

async fn a_conflict_in_the_middle_of_a_batch_fails_alone(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    append_versions(&*storage, "old", 2).await;
    hold(&storage, &watch).await;
    let mut appends = Vec::new();
    for number in 0..4 {
        let id = format!("a-{number}");
        appends.push(queue(&storage, commit(&id, 1, &id)).await);
    }
    appends.push(queue(&storage, commit("old", 2, "late")).await);
    appends.push(queue(&storage, commit("another", 1, "old-1")).await);
    for number in 4..8 {
        let id = format!("a-{number}");
        appends.push(queue(&storage, commit(&id, 1, &id)).await);
    }
    watch.go_on();

    let outcomes = outcomes(appends).await;
    assert_eq!(outcomes[4], Err(AppendError::VersionConflict));
    assert_eq!(outcomes[5], Err(AppendError::DuplicateRequest));
    for (number, outcome) in outcomes.iter().enumerate() {
        assert_eq!(
            outcome.is_ok(),
            number != 4 && number != 5,
            "{number}: {outcome:?}"
        );
    }
    // Rolled back once, and the rest in one go.
    let batches: Vec<_> = watch
        .written()
        .iter()
        .map(|batch| (batch.entries, batch.outcome))
        .collect();
    assert_eq!(
        batches,
        [(10, BatchOutcome::Conflict), (8, BatchOutcome::Committed)]
    );
    storage.close().await;
}

async fn the_entries_of_one_aggregate_in_a_batch_stand_or_fall_together(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    append_versions(&*storage, "stale", 1).await;
    hold(&storage, &watch).await;
    let good = [
        queue(&storage, commit("good", 1, "g-1")).await,
        queue(&storage, commit("good", 2, "g-2")).await,
    ];
    // Decided on a version 1 that another's is in the place of: version 2 would fit, and must not.
    let stale = [
        queue(&storage, commit("stale", 1, "s-1")).await,
        queue(&storage, commit("stale", 2, "s-2")).await,
    ];
    watch.go_on();

    let good = outcomes(good.into()).await;
    let positions: Vec<_> = good
        .iter()
        .map(|outcome| outcome.as_ref().unwrap().position)
        .collect();
    assert_eq!(positions[1], positions[0] + 1);
    for outcome in outcomes(stale.into()).await {
        assert_eq!(outcome, Err(AppendError::VersionConflict));
    }
    let found = storage
        .read_aggregate(&key("stale"), 0, u64::MAX, 10)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    let batches: Vec<_> = watch.written().iter().map(|batch| batch.entries).collect();
    assert_eq!(batches, [4, 2], "both pairs were in one batch");
    storage.close().await;
}

async fn rivals_for_one_version_never_share_a_batch(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    hold(&storage, &watch).await;
    let rivals = [
        queue(&storage, commit("a", 1, "first")).await,
        queue(&storage, commit("a", 1, "second")).await,
        queue(&storage, commit("b", 1, "first")).await,
        queue(&storage, commit("c", 1, "third")).await,
    ];
    watch.go_on();
    let outcomes = outcomes(rivals.into()).await;
    assert!(outcomes[0].is_ok() && outcomes[3].is_ok(), "{outcomes:?}");
    assert_eq!(outcomes[1], Err(AppendError::VersionConflict));
    assert_eq!(outcomes[2], Err(AppendError::DuplicateRequest));
    let batches: Vec<_> = watch
        .written()
        .iter()
        .map(|batch| (batch.entries, batch.outcome))
        .collect();
    // The second rival meets the first one's row, and so does its request id's.
    let expected = [
        (1, BatchOutcome::Committed),
        (3, BatchOutcome::Conflict),
        (1, BatchOutcome::Committed),
    ];
    assert_eq!(batches, expected);
    storage.close().await;
}

async fn r31_a_full_queue_is_busy_at_once(database: Database) {
    let queue_limits = QueueLimits {
        entries: 4,
        ..QueueLimits::default()
    };
    let small = StorageSettings {
        queue: queue_limits,
        ..database.settings()
    };
    let (storage, watch) = open_watched(small).await;
    hold(&storage, &watch).await;
    let mut queued = Vec::new();
    for number in 0..4 {
        let id = format!("a-{number}");
        queued.push(queue(&storage, commit(&id, 1, &id)).await);
    }
    let refused = storage.append(commit("b", 1, "b")).await;
    assert_eq!(refused, Err(AppendError::Busy));
    watch.go_on();
    for outcome in outcomes(queued).await {
        outcome.unwrap();
    }
    storage.append(commit("b", 1, "b")).await.unwrap();
    storage.close().await;
}

async fn r31_a_queue_full_of_bytes_is_busy_too(database: Database) {
    let queue_limits = QueueLimits {
        bytes: 1024,
        ..QueueLimits::default()
    };
    let small = StorageSettings {
        queue: queue_limits,
        ..database.settings()
    };
    let (storage, watch) = open_watched(small).await;
    hold(&storage, &watch).await;
    let queued = [
        queue(&storage, commit("a", 1, "a")).await,
        queue(&storage, commit("b", 1, "b")).await,
    ];
    assert_eq!(
        storage.append(commit("c", 1, "c")).await,
        Err(AppendError::Busy)
    );
    watch.go_on();
    for outcome in outcomes(queued.into()).await {
        outcome.unwrap();
    }
    storage.append(commit("c", 1, "c")).await.unwrap();
    storage.close().await;
}

async fn r55_a_caller_that_went_away_changes_nothing(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    hold(&storage, &watch).await;
    let gone = queue(&storage, commit("a", 1, "a")).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    watch.go_on();
    storage.append(commit("a", 2, "a-2")).await.unwrap();
    let found = storage
        .read_aggregate(&key("a"), 0, u64::MAX, 10)
        .await
        .unwrap();
    assert_eq!(found.len(), 2);
    storage.close().await;
}

async fn r34_closing_writes_what_is_queued_and_refuses_what_comes_later(database: Database) {
    let (storage, watch) = open_watched(database.settings()).await;
    hold(&storage, &watch).await;
    let queued = [
        queue(&storage, commit("a", 1, "a")).await,
        queue(&storage, commit("b", 1, "b")).await,
    ];
    let closing = {
        let storage = storage.clone();
        tokio::spawn(async move { storage.close().await })
    };
    watch.go_on();
    closing.await.unwrap();
    for outcome in outcomes(queued.into()).await {
        outcome.unwrap();
    }
    let late = storage.append(commit("c", 1, "c")).await;
    assert!(matches!(late, Err(AppendError::Unavailable(_))), "{late:?}");
    let late = storage.read_aggregate(&key("a"), 0, 1, 1).await;
    assert!(
        matches!(late, Err(StorageError::Unavailable(_))),
        "{late:?}"
    );
    storage.close().await;
}

on_every_database!(
    what_queued_while_a_batch_committed_goes_in_as_one_transaction,
    a_conflict_in_the_middle_of_a_batch_fails_alone,
    the_entries_of_one_aggregate_in_a_batch_stand_or_fall_together,
    rivals_for_one_version_never_share_a_batch,
    r31_a_full_queue_is_busy_at_once,
    r31_a_queue_full_of_bytes_is_busy_too,
    r55_a_caller_that_went_away_changes_nothing,
    r34_closing_writes_what_is_queued_and_refuses_what_comes_later,
);
