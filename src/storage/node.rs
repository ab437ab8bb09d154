//! A node's storage: the kernel's ports over log writers and batched reads.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::id::{
    AggregateKey, AggregateType, PartitionNo, Position, RequestId, TenantId, Version,
};
use wow_kernel::ports::{
    AppendError, AppendReceipt, Checkpoint, CheckpointStore, ColdHistory, CommitLog, History,
    PartitionHead, Probe, RequestLookup, SnapshotStore, StorageError,
};

use super::batcher::{Answers, Batcher, ReadLimits};
use super::error::OpenError;
use super::observer::{ReadKind, StorageObserver};
use super::reads::{
    AggregatePage, CheckpointQuestion, PartitionPage, ProbeQuestion, Reads, RequestQuestion,
};
use super::settings::StorageSettings;
use super::sqlite;
use super::writer::{BatchStore, Writer, WriterHandle};

/// The storage of one node. It implements [`CommitLog`], [`RequestLookup`], [`History`],
/// [`SnapshotStore`] and [`CheckpointStore`].
pub struct Storage {
    partitions: u32,
    /// A partition is always with the same writer, so an aggregate is too.
    writers: Vec<WriterHandle>,
    requests: Batcher<RequestQuestion, Option<Commit>>,
    histories: Batcher<AggregateKey, ColdHistory>,
    probes: Batcher<ProbeQuestion, Probe>,
    aggregate_pages: Batcher<AggregatePage, Vec<Commit>>,
    partition_pages: Batcher<PartitionPage, Vec<Commit>>,
    snapshots: Batcher<AggregateKey, Option<StoredSnapshot>>,
    snapshot_versions: Batcher<Vec<AggregateKey>, Vec<Version>>,
    heads: Batcher<Vec<PartitionNo>, Vec<PartitionHead>>,
    checkpoints: Batcher<CheckpointQuestion, Vec<Checkpoint>>,
    running: Running,
}

/// The tasks behind the queues, and what ends them.
struct Running {
    runtime: Handle,
    stop: CancellationToken,
    reads: Arc<dyn Reads>,
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

impl Storage {
    /// Opens the database that the settings name; creates a SQLite file that is missing. Its I/O
    /// runs on `runtime`, which has to outlive it.
    ///
    /// # Errors
    /// [`OpenError`] says what an operator has to do.
    pub async fn open(
        settings: StorageSettings,
        runtime: Handle,
        observer: Arc<dyn StorageObserver>,
    ) -> Result<Self, OpenError> {
        if !sqlite::accepts(&settings.url) {
            let scheme = settings.url.split(':').next().unwrap_or_default();
            let reason = format!("'{scheme}' is no database this binary knows; it knows sqlite");
            return Err(OpenError::Url(reason));
        }
        if settings.partitions == 0 {
            return Err(OpenError::Url(
                "log.partitions is 0; it has to be at least 1".to_owned(),
            ));
        }
        // On the runtime, for connections belong to where they are made.
        let opening = runtime.spawn(sqlite::open(settings.clone(), Arc::clone(&observer)));
        let opened = opening
            .await
            .unwrap_or_else(|error| Err(OpenError::Corrupt(format!("opening it failed: {error}"))));
        let (writer, reads) = opened?;
        Ok(Self::start(
            &settings,
            runtime,
            observer,
            vec![writer],
            Arc::new(reads),
        ))
    }

    fn start<S: BatchStore>(
        settings: &StorageSettings,
        runtime: Handle,
        observer: Arc<dyn StorageObserver>,
        stores: Vec<S>,
        reads: Arc<dyn Reads>,
    ) -> Self {
        let stop = CancellationToken::new();
        let mut tasks = Vec::new();
        let mut writers = Vec::new();
        for store in stores {
            let (handle, queue) = WriterHandle::new(settings.queue);
            let writer = Writer::new(queue, store, settings.batch, Arc::clone(&observer));
            tasks.push(runtime.spawn(writer.run(stop.clone())));
            writers.push(handle);
        }
        let mut start = Starter {
            settings,
            runtime: &runtime,
            observer,
            stop: &stop,
            reads: &reads,
            tasks: &mut tasks,
        };
        Self {
            partitions: settings.partitions,
            writers,
            requests: start.batcher(ReadKind::Request, 256, |reads, asked| async move {
                reads.requests(asked).await
            }),
            histories: start.batcher(ReadKind::History, 64, |reads, asked| async move {
                reads.histories(asked).await
            }),
            probes: start.batcher(ReadKind::Probe, 256, |reads, asked| async move {
                reads.probes(asked).await
            }),
            aggregate_pages: start.batcher(ReadKind::Aggregate, 16, |reads, asked| async move {
                reads.aggregates(asked).await
            }),
            partition_pages: start.batcher(ReadKind::Partition, 16, |reads, asked| async move {
                reads.partitions(asked).await
            }),
            snapshots: start.batcher(ReadKind::Snapshot, 64, |reads, asked| async move {
                reads.snapshots(asked).await
            }),
            snapshot_versions: start.batcher(
                ReadKind::SnapshotVersion,
                64,
                |reads, asked| async move { reads.snapshot_versions(asked).await },
            ),
            heads: start.batcher(ReadKind::Head, 64, |reads, asked| async move {
                reads.heads(asked).await
            }),
            checkpoints: start.batcher(ReadKind::Checkpoint, 64, |reads, asked| async move {
                reads.checkpoints(asked).await
            }),
            running: Running {
                runtime,
                stop,
                reads,
                tasks: Arc::new(Mutex::new(tasks)),
            },
        }
    }

    /// The number of partitions of the log.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Ends storage: what is queued is still written and answered, what comes later is refused,
    /// and the file is free for another node when this returns. Safe to call again.
    pub async fn close(&self) {
        self.running.stop.cancel();
        let (tasks, reads) = (
            Arc::clone(&self.running.tasks),
            Arc::clone(&self.running.reads),
        );
        // On a task of its own: a caller that goes away doesn't leave it half closed.
        let closing = self.running.runtime.spawn(async move {
            let mut tasks = tasks.lock().await;
            for task in tasks.drain(..) {
                if let Err(error) = task.await {
                    tracing::error!(%error, "a task of storage failed");
                }
            }
            reads.close().await;
        });
        if let Err(error) = closing.await {
            tracing::error!(%error, "storage didn't close cleanly");
        }
    }

    fn writer(&self, partition: PartitionNo) -> &WriterHandle {
        &self.writers[partition.0 as usize % self.writers.len()]
    }
}

/// Starts batchers.
struct Starter<'s> {
    settings: &'s StorageSettings,
    runtime: &'s Handle,
    observer: Arc<dyn StorageObserver>,
    stop: &'s CancellationToken,
    reads: &'s Arc<dyn Reads>,
    tasks: &'s mut Vec<JoinHandle<()>>,
}

impl Starter<'_> {
    fn batcher<Q, A, F, Fut>(&mut self, kind: ReadKind, batch: usize, ask: F) -> Batcher<Q, A>
    where
        Q: Send + 'static,
        A: Send + 'static,
        F: Fn(Arc<dyn Reads>, Vec<Q>) -> Fut + Send + 'static,
        Fut: Future<Output = Answers<A>> + Send + 'static,
    {
        let limits = ReadLimits {
            kind,
            batch,
            timeout: self.settings.statement_timeout,
        };
        let reads = Arc::clone(self.reads);
        let (batcher, task) = Batcher::spawn(
            self.runtime,
            limits,
            Arc::clone(&self.observer),
            self.stop.clone(),
            move |asked| ask(Arc::clone(&reads), asked),
        );
        self.tasks.push(task);
        batcher
    }
}

/// The end of a range that begins after `after`, ends at `up_to` at the latest, and holds at
/// most `limit`.
fn end(after: u64, up_to: u64, limit: usize) -> u64 {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    up_to.min(after.saturating_add(limit))
}

#[async_trait]
impl CommitLog for Storage {
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        self.writer(commit.partition).append(commit).await
    }

    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let up_to = end(after, up_to, limit);
        self.aggregate_pages
            .ask(AggregatePage {
                key: key.clone(),
                after,
                up_to,
            })
            .await
    }

    async fn read_partition(
        &self,
        partition: PartitionNo,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let up_to = end(after, Position::MAX, limit);
        self.partition_pages
            .ask(PartitionPage {
                partition,
                after,
                up_to,
            })
            .await
    }

    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError> {
        self.heads.ask(partitions.to_vec()).await
    }
}

#[async_trait]
impl RequestLookup for Storage {
    async fn find(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Result<Option<Commit>, StorageError> {
        let question = RequestQuestion {
            tenant: tenant.clone(),
            aggregate_type: aggregate_type.clone(),
            request_id: request_id.clone(),
        };
        self.requests.ask(question).await
    }
}

#[async_trait]
impl History for Storage {
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        self.histories.ask(key.clone()).await
    }

    async fn probe(
        &self,
        key: &AggregateKey,
        request_id: Option<&RequestId>,
    ) -> Result<Probe, StorageError> {
        let question = ProbeQuestion {
            key: key.clone(),
            request_id: request_id.cloned(),
        };
        self.probes.ask(question).await
    }
}

#[async_trait]
impl SnapshotStore for Storage {
    async fn save(&self, snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError> {
        // All or none means one transaction, so one writer, whatever their partitions are: an
        // upsert where newer gives the same from any of them.
        let Some(first) = snapshots.first() else {
            return Ok(());
        };
        self.writer(first.partition).save(snapshots).await
    }

    async fn find(&self, key: &AggregateKey) -> Result<Option<StoredSnapshot>, StorageError> {
        self.snapshots.ask(key.clone()).await
    }

    async fn versions(&self, keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError> {
        self.snapshot_versions.ask(keys.to_vec()).await
    }
}

#[async_trait]
impl CheckpointStore for Storage {
    async fn load(
        &self,
        subscription: &str,
        partitions: &[PartitionNo],
    ) -> Result<Vec<Checkpoint>, StorageError> {
        let question = CheckpointQuestion {
            subscription: subscription.to_owned(),
            partitions: partitions.to_vec(),
        };
        self.checkpoints.ask(question).await
    }

    async fn save(&self, checkpoint: Checkpoint) -> Result<bool, StorageError> {
        self.writer(checkpoint.partition).move_to(checkpoint).await
    }
}
