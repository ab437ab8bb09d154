//! The batched reads of a node: a queue and a task for each kind of question.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::id::{AggregateKey, PartitionNo, Version};
use wow_kernel::ports::{Checkpoint, ColdHistory, PartitionHead, Probe};

use super::batcher::{Answers, Batcher, ReadLimits};
use super::observer::{ReadKind, StorageObserver};
use super::reads::{
    AggregatePage, CheckpointQuestion, PartitionPage, ProbeQuestion, Reads, RequestQuestion,
};
use super::settings::StorageSettings;

/// Where each kind of question is asked.
pub(super) struct Readers {
    pub(super) requests: Batcher<RequestQuestion, Option<Commit>>,
    pub(super) histories: Batcher<AggregateKey, ColdHistory>,
    pub(super) probes: Batcher<ProbeQuestion, Probe>,
    pub(super) aggregate_pages: Batcher<AggregatePage, Vec<Commit>>,
    pub(super) partition_pages: Batcher<PartitionPage, Vec<Commit>>,
    pub(super) snapshots: Batcher<AggregateKey, Option<StoredSnapshot>>,
    pub(super) snapshot_versions: Batcher<Vec<AggregateKey>, Vec<Version>>,
    pub(super) heads: Batcher<Vec<PartitionNo>, Vec<PartitionHead>>,
    pub(super) checkpoints: Batcher<CheckpointQuestion, Vec<Checkpoint>>,
}

impl Readers {
    /// Starts a task for each kind. Those whose answers may be large take fewer questions at once.
    pub(super) fn start(
        settings: &StorageSettings,
        runtime: &Handle,
        observer: &Arc<dyn StorageObserver>,
        stop: &CancellationToken,
        reads: &Arc<dyn Reads>,
    ) -> (Self, Vec<JoinHandle<()>>) {
        let mut start = Starter {
            settings,
            runtime,
            observer,
            stop,
            reads,
            tasks: Vec::new(),
        };
        let readers = Self {
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
        };
        (readers, start.tasks)
    }
}

/// Starts batchers.
struct Starter<'s> {
    settings: &'s StorageSettings,
    runtime: &'s Handle,
    observer: &'s Arc<dyn StorageObserver>,
    stop: &'s CancellationToken,
    reads: &'s Arc<dyn Reads>,
    tasks: Vec<JoinHandle<()>>,
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
            Arc::clone(self.observer),
            self.stop.clone(),
            move |asked| ask(Arc::clone(&reads), asked),
        );
        self.tasks.push(task);
        batcher
    }
}
