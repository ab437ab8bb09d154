//! A node's storage: the kernel's ports over log writers and batched reads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
    LeaseStore, Member, MemberClaim, PartitionHead, PartitionLease, Probe, RequestLookup,
    SnapshotStore, StorageError,
};

use super::error::OpenError;
use super::leases::{LeaseSource, SqlLeases};
use super::mysql::{self, MySqlServer};
use super::observer::StorageObserver;
use super::postgres::{self, PostgresServer};
use super::readers::Readers;
use super::reads::{
    AggregatePage, CheckpointQuestion, PartitionPage, ProbeQuestion, Reads, RequestQuestion,
};
use super::settings::StorageSettings;
use super::writer::{BatchStore, Writer, WriterHandle};
use super::{server, sqlite};

/// The storage of one node. It implements [`CommitLog`], [`RequestLookup`], [`History`],
/// [`SnapshotStore`], [`CheckpointStore`] and [`LeaseStore`].
pub struct Storage {
    partitions: u32,
    /// A partition is always with the same writer, so an aggregate is too.
    writers: Vec<WriterHandle>,
    readers: Readers,
    leases: SqlLeases,
    runtime: Handle,
    stop: CancellationToken,
    /// None once it is closed.
    running: Arc<Mutex<Option<Running>>>,
}

/// A database that is open.
pub(super) struct Opened {
    /// At least one.
    pub(super) writers: Vec<Box<dyn BatchStore>>,
    pub(super) reads: Arc<dyn Reads>,
    pub(super) leases: LeaseSource,
}

/// The tasks behind the queues, and what has to be ended after them.
struct Running {
    writers: Vec<JoinHandle<Box<dyn BatchStore>>>,
    readers: Vec<JoinHandle<()>>,
    reads: Arc<dyn Reads>,
}

impl Running {
    /// Ends the readers before the writers: SQLite's last connection puts the WAL into the file,
    /// and only one that writes can.
    async fn end(self) {
        let mut stores = Vec::new();
        for writer in self.writers {
            match writer.await {
                Ok(store) => stores.push(store),
                Err(error) => tracing::error!(%error, "a log writer failed"),
            }
        }
        for reader in self.readers {
            if let Err(error) = reader.await {
                tracing::error!(%error, "a reader of storage failed");
            }
        }
        self.reads.close().await;
        for mut store in stores {
            store.close().await;
        }
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

impl Storage {
    /// Refuses a URL that no database here takes, and opens nothing.
    ///
    /// # Errors
    /// [`OpenError::Url`].
    pub fn check_url(url: &str) -> Result<(), OpenError> {
        if postgres::accepts(url) || mysql::accepts(url) {
            // Its parts are judged where it is connected to.
            return Ok(());
        }
        if !sqlite::accepts(url) {
            return Err(OpenError::unknown_scheme(url));
        }
        sqlite::check_url(url)
    }

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
        if settings.partitions == 0 {
            return Err(OpenError::NoPartitions);
        }
        Self::check_url(&settings.url)?;
        // On the runtime, for connections belong to where they are made.
        let opening = runtime.spawn(open(settings.clone(), Arc::clone(&observer)));
        let opened = opening
            .await
            .unwrap_or_else(|error| Err(OpenError::Corrupt(format!("opening it failed: {error}"))));
        Ok(Self::start(&settings, runtime, &observer, opened?))
    }

    fn start(
        settings: &StorageSettings,
        runtime: Handle,
        observer: &Arc<dyn StorageObserver>,
        opened: Opened,
    ) -> Self {
        let reads = opened.reads;
        let stop = CancellationToken::new();
        let mut writers = Vec::new();
        let mut writing = Vec::new();
        for store in opened.writers {
            let (handle, queue) = WriterHandle::new(settings.queue);
            let writer = Writer::new(queue, store, settings.batch, Arc::clone(observer));
            let stop = stop.clone();
            writing.push(runtime.spawn(writer.run(stop)));
            writers.push(handle);
        }
        let (readers, reading) = Readers::start(settings, &runtime, observer, &stop, &reads);
        let running = Running {
            writers: writing,
            readers: reading,
            reads,
        };
        Self {
            partitions: settings.partitions,
            writers,
            readers,
            leases: SqlLeases::new(opened.leases, runtime.clone()),
            runtime,
            stop,
            running: Arc::new(Mutex::new(Some(running))),
        }
    }

    /// The number of partitions of the log.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Ends storage: what is queued is still written and answered, what comes later is refused,
    /// and the file is whole and free for another node when this returns. Safe to call again.
    pub async fn close(&self) {
        self.stop.cancel();
        let running = Arc::clone(&self.running);
        // On a task of its own: a caller that goes away doesn't leave it half closed. A second
        // caller waits for the first at the lock.
        let closing = self.runtime.spawn(async move {
            let mut running = running.lock().await;
            if let Some(running) = running.take() {
                running.end().await;
            }
        });
        if let Err(error) = closing.await {
            tracing::error!(%error, "storage didn't close cleanly");
        }
        self.leases.close().await;
    }

    fn writer(&self, partition: PartitionNo) -> &WriterHandle {
        &self.writers[partition.0 as usize % self.writers.len()]
    }
}

/// Opens the database by the scheme of its URL.
async fn open(
    settings: StorageSettings,
    observer: Arc<dyn StorageObserver>,
) -> Result<Opened, OpenError> {
    if sqlite::accepts(&settings.url) {
        return sqlite::open(settings, observer).await;
    }
    if postgres::accepts(&settings.url) {
        let server = PostgresServer::new(
            &settings.url,
            settings.password.as_ref(),
            settings.connect_timeout,
            settings.statement_timeout,
        )?;
        return server::open(server, settings, observer).await;
    }
    if mysql::accepts(&settings.url) {
        let server = MySqlServer::new(
            &settings.url,
            settings.password.as_ref(),
            settings.connect_timeout,
            settings.statement_timeout,
        )?;
        return server::open(server, settings, observer).await;
    }
    Err(OpenError::unknown_scheme(&settings.url))
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
        self.readers
            .aggregate_pages
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
        self.readers
            .partition_pages
            .ask(PartitionPage {
                partition,
                after,
                up_to,
            })
            .await
    }

    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError> {
        self.readers.heads.ask(partitions.to_vec()).await
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
        self.readers.requests.ask(question).await
    }
}

#[async_trait]
impl History for Storage {
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        self.readers.histories.ask(key.clone()).await
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
        self.readers.probes.ask(question).await
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
        self.readers.snapshots.ask(key.clone()).await
    }

    async fn versions(&self, keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError> {
        self.readers.snapshot_versions.ask(keys.to_vec()).await
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
        self.readers.checkpoints.ask(question).await
    }

    async fn save(&self, checkpoint: Checkpoint) -> Result<bool, StorageError> {
        self.writer(checkpoint.partition).move_to(checkpoint).await
    }
}

#[async_trait]
impl LeaseStore for Storage {
    async fn claim(&self, member: &Member, ttl: Duration) -> Result<MemberClaim, StorageError> {
        self.leases.claim(member, ttl).await
    }

    async fn renew(&self, member: &Member, ttl: Duration) -> Result<bool, StorageError> {
        self.leases.renew(member, ttl).await
    }

    async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError> {
        self.leases.view().await
    }

    async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, StorageError> {
        self.leases.take(owner, seen).await
    }

    async fn release(
        &self,
        owner: &Member,
        partitions: &[PartitionNo],
    ) -> Result<(), StorageError> {
        self.leases.release(owner, partitions).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StorageError> {
        self.leases.leave(member).await
    }
}
