//! Stores with one flaw each, as adapters have had them, for the tests of the suites.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::commit::{Commit, RecordedEvent, StoredSnapshot};
use crate::id::{
    AggregateId, AggregateKey, AggregateType, PartitionNo, Position, RequestId, TenantId, Version,
};
use crate::memory::MemoryStore;
use crate::ports::{
    AppendError, AppendReceipt, Checkpoint, CheckpointStore, ColdHistory, CommitLog, History,
    LeaseStore, Member, MemberClaim, PartitionHead, PartitionLease, Probe, RequestLookup,
    SnapshotStore, StorageError,
};

/// What is wrong with a store.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Flaw {
    IdsWithoutCase,
    RequestIdsWithoutCase,
    RequestIdsOfAllTenants,
    OneErrorForBothKeys,
    NumbersThroughFloats,
    HolesInPositions,
    NewestPositionFirst,
    LimitsIgnored,
    BatchFailsTogether,
    SnapshotLost,
    PageWithoutMore,
    RequestsForgotten,
    ProbeOfAnotherTenant,
    AnswersOfAnother,
    RevisionIgnored,
    RequestsOverwritten,
    VersionsInAnyOrder,
    EpochIgnored,
    GenerationIgnored,
    ExpiryIgnored,
    StealsFromTheLive,
    OlderLifeStillOwns,
}

pub(super) struct Flawed {
    pub(super) inner: MemoryStore,
    pub(super) flaw: Flaw,
}

impl Flawed {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn key(&self, key: &AggregateKey) -> AggregateKey {
        let id = key.id.as_str();
        let id = if self.has(Flaw::IdsWithoutCase) {
            id.to_lowercase()
        } else {
            id.to_owned()
        };
        AggregateKey {
            id: AggregateId::trusted(id),
            ..key.clone()
        }
    }

    fn request_id(&self, request_id: &RequestId) -> RequestId {
        if self.has(Flaw::RequestIdsWithoutCase) {
            RequestId::trusted(request_id.as_str().to_lowercase())
        } else {
            request_id.clone()
        }
    }

    fn commits(&self, mut commits: Vec<Commit>) -> Vec<Commit> {
        if self.has(Flaw::NumbersThroughFloats) {
            for commit in &mut commits {
                commit.events = commit.events.iter().map(through_floats).collect();
            }
        }
        commits
    }
}

fn through_floats(event: &RecordedEvent) -> RecordedEvent {
    let body = match serde_json::from_str::<serde_json::Value>(event.body.get()) {
        Ok(value) => super::samples::raw(&value.to_string()),
        Err(_) => event.body.clone(),
    };
    RecordedEvent {
        body,
        ..event.clone()
    }
}

#[async_trait]
impl CommitLog for Flawed {
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        let mut commit = (*commit).clone();
        commit.key = self.key(&commit.key);
        commit.request_id = self.request_id(&commit.request_id);
        if self.has(Flaw::RequestIdsOfAllTenants) {
            let tenant = TenantId::trusted("acme");
            let aggregate_type = &commit.key.aggregate_type;
            let request_id = &commit.request_id;
            let found = RequestLookup::find(&self.inner, &tenant, aggregate_type, request_id).await;
            if found.is_ok_and(|found| found.is_some()) {
                return Err(AppendError::DuplicateRequest);
            }
        }
        let appended = self.inner.append(Arc::new(commit)).await;
        match appended {
            Err(_) if self.has(Flaw::OneErrorForBothKeys) => Err(AppendError::VersionConflict),
            Err(_) if self.has(Flaw::BatchFailsTogether) => Err(AppendError::Unavailable(
                "another entry of the batch".into(),
            )),
            Ok(receipt) if self.has(Flaw::HolesInPositions) => Ok(AppendReceipt {
                position: receipt.position * 2,
                ..receipt
            }),
            other => other,
        }
    }

    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let limit = if self.has(Flaw::LimitsIgnored) {
            usize::MAX
        } else {
            limit
        };
        let found = self
            .inner
            .read_aggregate(&self.key(key), after, up_to, limit)
            .await?;
        Ok(self.commits(found))
    }

    async fn read_partition(
        &self,
        partition: PartitionNo,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let mut found = self.inner.read_partition(partition, after, limit).await?;
        if self.has(Flaw::NewestPositionFirst) && found.len() > 1 {
            // As where positions are given before the commit: the last but one isn't there yet.
            found.remove(found.len() - 2);
        }
        Ok(self.commits(found))
    }

    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError> {
        self.inner.heads(partitions).await
    }
}

#[async_trait]
impl History for Flawed {
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        let mut loaded = History::load(&self.inner, key).await?;
        match self.flaw {
            Flaw::SnapshotLost => loaded.snapshot = None,
            Flaw::PageWithoutMore => loaded.has_more = false,
            Flaw::RequestsForgotten => loaded.requests.clear(),
            _ => {}
        }
        Ok(loaded)
    }

    async fn probe(
        &self,
        key: &AggregateKey,
        request_id: Option<&RequestId>,
    ) -> Result<Probe, StorageError> {
        let mut probe = self.inner.probe(key, request_id).await?;
        if let (Flaw::ProbeOfAnotherTenant, Some(request_id)) = (self.flaw, request_id) {
            let tenant = TenantId::default_tenant();
            probe.request =
                RequestLookup::find(&self.inner, &tenant, &key.aggregate_type, request_id).await?;
        }
        Ok(probe)
    }
}

#[async_trait]
impl RequestLookup for Flawed {
    async fn find(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Result<Option<Commit>, StorageError> {
        let found = RequestLookup::find(&self.inner, tenant, aggregate_type, request_id).await?;
        if self.has(Flaw::AnswersOfAnother) && found.is_none() {
            // A batch whose answers are matched by place, not by key.
            return Ok(self.inner.read_partition(PartitionNo(0), 0, 1).await?.pop());
        }
        Ok(found)
    }
}

#[async_trait]
impl SnapshotStore for Flawed {
    async fn save(&self, mut snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError> {
        for snapshot in &mut snapshots {
            if self.has(Flaw::RevisionIgnored) {
                snapshot.state_revision = 1;
            }
            if self.has(Flaw::RequestsOverwritten) && snapshot.recent_requests.is_none() {
                snapshot.recent_requests = Some("[]".into());
            }
        }
        SnapshotStore::save(&self.inner, snapshots).await
    }

    async fn find(&self, key: &AggregateKey) -> Result<Option<StoredSnapshot>, StorageError> {
        SnapshotStore::find(&self.inner, key).await
    }

    async fn versions(&self, keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError> {
        let mut versions = self.inner.versions(keys).await?;
        if self.has(Flaw::VersionsInAnyOrder) {
            versions.sort_unstable();
        }
        Ok(versions)
    }
}

#[async_trait]
impl CheckpointStore for Flawed {
    async fn load(
        &self,
        subscription: &str,
        partitions: &[PartitionNo],
    ) -> Result<Vec<Checkpoint>, StorageError> {
        CheckpointStore::load(&self.inner, subscription, partitions).await
    }

    async fn save(&self, mut checkpoint: Checkpoint) -> Result<bool, StorageError> {
        match self.flaw {
            Flaw::EpochIgnored => checkpoint.epoch = 1,
            Flaw::GenerationIgnored => checkpoint.generation = 1,
            _ => {}
        }
        CheckpointStore::save(&self.inner, checkpoint).await
    }
}

#[async_trait]
impl LeaseStore for Flawed {
    async fn claim(&self, member: &Member, ttl: Duration) -> Result<MemberClaim, StorageError> {
        let ttl = if self.has(Flaw::ExpiryIgnored) {
            ttl * 1000
        } else {
            ttl
        };
        self.inner.claim(member, ttl).await
    }

    async fn renew(&self, member: &Member, ttl: Duration) -> Result<bool, StorageError> {
        self.inner.renew(member, ttl).await
    }

    async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError> {
        self.inner.view().await
    }

    async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, StorageError> {
        let (members, leases) = self.inner.view().await?;
        for lease in leases
            .iter()
            .filter(|lease| seen.iter().any(|s| s.partition == lease.partition))
        {
            let Some((name, incarnation)) = &lease.owner else {
                continue;
            };
            let named = members.iter().find(|member| member.name == *name);
            if self.has(Flaw::OlderLifeStillOwns)
                && named.is_some_and(|member| member.incarnation != *incarnation)
            {
                return Ok(Vec::new());
            }
            if self.has(Flaw::StealsFromTheLive) {
                let mut victim = owner.clone();
                (victim.name, victim.incarnation) = (name.clone(), *incarnation);
                self.inner.release(&victim, &[lease.partition]).await?;
            }
        }
        self.inner.take(owner, seen).await
    }

    async fn release(
        &self,
        owner: &Member,
        partitions: &[PartitionNo],
    ) -> Result<(), StorageError> {
        self.inner.release(owner, partitions).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StorageError> {
        self.inner.leave(member).await
    }
}
