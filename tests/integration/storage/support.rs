//! A database in a folder of its own, commits to put in it, and an observer that counts.

use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use uuid::Uuid;
use wow::storage::{
    OpenError, ReadBatch, Storage, StorageObserver, StorageSettings, Unobserved, WrittenBatch,
};
use wow_kernel::commit::{AggregateFacts, Commit, RecordedEvent, StoredSnapshot};
use wow_kernel::conformance::PARTITIONS;
use wow_kernel::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, Position, RequestId,
    SpaceId, TenantId, Version,
};
use wow_kernel::partition::partition_of;
use wow_kernel::ports::{Checkpoint, CommitLog};

/// A folder for one database, gone when it is dropped.
pub(super) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The URL of a database in a folder.
pub(super) fn url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("wow.db").display())
}

/// The settings of a database in a folder.
pub(super) fn settings(folder: &Path) -> StorageSettings {
    settings_of(&url(folder))
}

/// The settings of a database.
pub(super) fn settings_of(url: &str) -> StorageSettings {
    StorageSettings {
        partitions: PARTITIONS,
        ..StorageSettings::new(url, "example")
    }
}

/// Opens a database on this test's runtime.
pub(super) async fn open(settings: StorageSettings) -> Result<Storage, OpenError> {
    Storage::open(settings, Handle::current(), Arc::new(Unobserved)).await
}

/// Opens a database that is watched.
pub(super) async fn open_watched(settings: StorageSettings) -> (Arc<Storage>, Arc<Watch>) {
    let watch = Arc::new(Watch::default());
    let storage = Storage::open(settings, Handle::current(), watch.clone()).await;
    (Arc::new(storage.unwrap()), watch)
}

/// An account.
pub(super) fn key(id: &str) -> AggregateKey {
    AggregateKey {
        tenant: TenantId::default_tenant(),
        aggregate_type: AggregateType::trusted("account"),
        id: AggregateId::trusted(id),
    }
}

/// A small commit of one event.
pub(super) fn commit(id: &str, version: Version, request: &str) -> Arc<Commit> {
    let key = key(id);
    Arc::new(Commit {
        partition: partition_of(&key, PARTITIONS),
        position: 0,
        key,
        version,
        request_id: RequestId::trusted(request),
        command_id: CommandId(Uuid::now_v7()),
        command_type: Arc::from("deposit"),
        principal: Arc::from("ann"),
        owner: OwnerId::none(),
        space: SpaceId::none(),
        origin: NodeName::trusted("node-1"),
        events: Arc::from([RecordedEvent {
            name: Arc::from("deposited"),
            revision: 1,
            body: RawValue::from_string(format!("{{\"amount\":{version}}}")).unwrap(),
        }]),
        result: None,
        headers: [("channel".to_owned(), "web".to_owned())].into(),
        committed_at: 0,
    })
}

/// Appends versions 1 to `newest` of an account.
pub(super) async fn append_versions(log: &dyn CommitLog, id: &str, newest: Version) {
    for version in 1..=newest {
        log.append(commit(id, version, &format!("{id}-{version}")))
            .await
            .unwrap();
    }
}

/// A snapshot of an account.
pub(super) fn snapshot(id: &str, version: Version, position: Position) -> StoredSnapshot {
    let key = key(id);
    StoredSnapshot {
        partition: partition_of(&key, PARTITIONS),
        key,
        version,
        position,
        facts: AggregateFacts::default(),
        state: format!("{{\"balance\":{version}}}"),
        state_revision: 1,
        recent_requests: None,
        snapshot_time: 0,
    }
}

/// A checkpoint of the partition in which an account lies.
pub(super) fn checkpoint(subscription: &str, id: &str, position: Position) -> Checkpoint {
    Checkpoint {
        subscription: subscription.to_owned(),
        partition: partition_of(&key(id), PARTITIONS),
        position,
        epoch: 1,
        generation: 1,
    }
}

/// Runs a future on a task of its own, and returns once it was polled: what it asks of storage is
/// queued by then.
pub(super) async fn begin<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let (begun, polled) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut future = std::pin::pin!(future);
        let first = futures_util::poll!(&mut future);
        let _ = begun.send(());
        match first {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => future.await,
        }
    });
    polled.await.unwrap();
    task
}

/// Remembers what storage did, and can hold it: while it is held, storage's tasks stand still
/// after what they are doing, and what is asked of them queues.
#[derive(Debug, Default)]
pub(super) struct Watch {
    seen: Mutex<Seen>,
    let_go: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    held: bool,
    standing: bool,
    written: Vec<WrittenBatch>,
    read: Vec<ReadBatch>,
    statements: usize,
}

impl Watch {
    /// From the next batch on, storage stands still when it has ended one.
    pub(super) fn hold(&self) {
        self.seen.lock().held = true;
    }

    /// Waits until storage stands still.
    pub(super) async fn standing(&self) {
        while !self.seen.lock().standing {
            tokio::task::yield_now().await;
        }
    }

    /// Storage goes on, and forgets what it did so far.
    pub(super) fn go_on(&self) {
        *self.seen.lock() = Seen::default();
        self.let_go.notify_all();
    }

    pub(super) fn written(&self) -> Vec<WrittenBatch> {
        self.seen.lock().written.clone()
    }

    pub(super) fn read(&self) -> Vec<ReadBatch> {
        self.seen.lock().read.clone()
    }

    pub(super) fn statements(&self) -> usize {
        self.seen.lock().statements
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.lock();
        note(&mut seen);
        if seen.held {
            seen.standing = true;
            // A test that fails while it holds storage must not hang.
            self.let_go
                .wait_while_for(&mut seen, |seen| seen.held, Duration::from_secs(30));
        }
    }
}

impl StorageObserver for Watch {
    fn batch_written(&self, batch: &WrittenBatch) {
        self.note(|seen| seen.written.push(batch.clone()));
    }

    fn batch_read(&self, read: &ReadBatch) {
        self.note(|seen| seen.read.push(read.clone()));
    }

    fn statement(&self, _elapsed: Duration) {
        self.seen.lock().statements += 1;
    }
}
