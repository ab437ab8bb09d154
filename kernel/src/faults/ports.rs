//! The ports, each call of which may fail.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::fault::PortError;
use super::{Call, Fate, Fault, Faults};
use crate::commit::{Commit, StoredSnapshot};
use crate::id::{AggregateKey, AggregateType, PartitionNo, Position, RequestId, TenantId, Version};
use crate::ports::{
    AppendError, AppendReceipt, Checkpoint, CheckpointStore, ColdHistory, CommitLog, History,
    LeaseStore, Member, MemberClaim, PartitionHead, PartitionLease, Probe, RequestLookup,
    SnapshotStore, StorageError,
};

/// An implementation of storage ports that fails as [`Faults`] plans. It implements each port
/// that the wrapped one does.
pub struct Faulty<S: ?Sized> {
    faults: Faults,
    inner: Arc<S>,
}

impl<S: ?Sized> Faulty<S> {
    pub(super) fn new(inner: Arc<S>, faults: Faults) -> Self {
        Self { faults, inner }
    }
}

impl<S: ?Sized> fmt::Debug for Faulty<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Faults {
    /// Runs a call to the end that is planned for it. The future does nothing before it is
    /// polled, so a call that is refused never happens.
    async fn run<T, E: PortError>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Fate {
            fault,
            before,
            after,
        } = self.next(call);
        if let Some(hold) = before {
            hold.pass().await;
        }
        if let Fault::Delay(duration) = fault {
            self.shared.clock.sleep(duration).await;
        }
        let answer = match fault {
            Fault::Refuse => Err(E::unavailable()),
            Fault::Busy => Err(E::busy()),
            Fault::LoseCall => Err(E::unknown()),
            // What the call itself said, success or refusal, is what its caller never hears.
            Fault::LoseAnswer => {
                let _unheard = work.await;
                Err(E::unknown())
            }
            Fault::None | Fault::Delay(_) | Fault::DelayAnswer(_) => work.await,
        };
        if let Some(hold) = after {
            hold.pass().await;
        }
        if let Fault::DelayAnswer(duration) = fault {
            self.shared.clock.sleep(duration).await;
        }
        answer
    }
}

#[async_trait]
impl<S: CommitLog + ?Sized> CommitLog for Faulty<S> {
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        self.faults
            .run(Call::Append, self.inner.append(commit))
            .await
    }

    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let read = self.inner.read_aggregate(key, after, up_to, limit);
        self.faults.run(Call::ReadAggregate, read).await
    }

    async fn read_partition(
        &self,
        partition: PartitionNo,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let read = self.inner.read_partition(partition, after, limit);
        self.faults.run(Call::ReadPartition, read).await
    }

    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError> {
        self.faults
            .run(Call::Heads, self.inner.heads(partitions))
            .await
    }
}

#[async_trait]
impl<S: History + ?Sized> History for Faulty<S> {
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        self.faults
            .run(Call::LoadHistory, self.inner.load(key))
            .await
    }

    async fn probe(
        &self,
        key: &AggregateKey,
        request_id: Option<&RequestId>,
    ) -> Result<Probe, StorageError> {
        self.faults
            .run(Call::Probe, self.inner.probe(key, request_id))
            .await
    }
}

#[async_trait]
impl<S: RequestLookup + ?Sized> RequestLookup for Faulty<S> {
    async fn find(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Result<Option<Commit>, StorageError> {
        let find = self.inner.find(tenant, aggregate_type, request_id);
        self.faults.run(Call::FindRequest, find).await
    }
}

#[async_trait]
impl<S: SnapshotStore + ?Sized> SnapshotStore for Faulty<S> {
    async fn save(&self, snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError> {
        self.faults
            .run(Call::SaveSnapshots, self.inner.save(snapshots))
            .await
    }

    async fn find(&self, key: &AggregateKey) -> Result<Option<StoredSnapshot>, StorageError> {
        self.faults
            .run(Call::FindSnapshot, self.inner.find(key))
            .await
    }

    async fn versions(&self, keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError> {
        self.faults
            .run(Call::SnapshotVersions, self.inner.versions(keys))
            .await
    }
}

#[async_trait]
impl<S: CheckpointStore + ?Sized> CheckpointStore for Faulty<S> {
    async fn load(
        &self,
        subscription: &str,
        partitions: &[PartitionNo],
    ) -> Result<Vec<Checkpoint>, StorageError> {
        self.faults
            .run(
                Call::LoadCheckpoints,
                self.inner.load(subscription, partitions),
            )
            .await
    }

    async fn save(&self, checkpoint: Checkpoint) -> Result<bool, StorageError> {
        self.faults
            .run(Call::SaveCheckpoint, self.inner.save(checkpoint))
            .await
    }
}

#[async_trait]
impl<S: LeaseStore + ?Sized> LeaseStore for Faulty<S> {
    async fn claim(&self, member: &Member, ttl: Duration) -> Result<MemberClaim, StorageError> {
        self.faults
            .run(Call::Claim, self.inner.claim(member, ttl))
            .await
    }

    async fn renew(&self, member: &Member, ttl: Duration) -> Result<bool, StorageError> {
        self.faults
            .run(Call::Renew, self.inner.renew(member, ttl))
            .await
    }

    async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError> {
        self.faults.run(Call::ViewLeases, self.inner.view()).await
    }

    async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, StorageError> {
        self.faults
            .run(Call::Take, self.inner.take(owner, seen))
            .await
    }

    async fn release(
        &self,
        owner: &Member,
        partitions: &[PartitionNo],
    ) -> Result<(), StorageError> {
        self.faults
            .run(Call::Release, self.inner.release(owner, partitions))
            .await
    }

    async fn leave(&self, member: &Member) -> Result<(), StorageError> {
        self.faults.run(Call::Leave, self.inner.leave(member)).await
    }
}
