//! The log in memory.
//!
//! Each partition is a list, so a position is an index and R80 holds by construction. The unique
//! keys of R44 are two indexes from a key to a place in a partition.

use std::collections::hash_map;
use std::sync::Arc;

use async_trait::async_trait;

use super::index::{Index, Scope};
use super::{HashMap, MemoryStore};
use crate::commit::Commit;
use crate::id::{
    AggregateId, AggregateKey, AggregateType, EpochMillis, PartitionNo, Position, RequestId,
    TenantId, Version,
};
use crate::ports::{AppendError, AppendReceipt, CommitLog, PartitionHead, StorageError};

/// Every partition, and the unique keys over all of them.
///
/// Nothing ever walks a hash map here, so a run is the same each time whatever its hasher does.
#[derive(Default)]
pub(super) struct Log {
    partitions: HashMap<PartitionNo, Vec<Entry>>,
    scopes: HashMap<TenantId, HashMap<AggregateType, Scope>>,
    scopes_given: u32,
    /// The tenant and type of the newest commit: most often those of the next one, too.
    newest_scope: Option<(TenantId, AggregateType, Scope)>,
    /// Where each version of an aggregate is; version n is at index n − 1.
    versions: Index<AggregateId, Vec<Place>>,
    requests: Index<RequestId, Place>,
    newest_at: EpochMillis,
}

#[derive(Clone, Copy)]
struct Place {
    partition: PartitionNo,
    position: Position,
}

/// What the log keeps of a commit: the caller's own, which is never copied to be stored, and what
/// the log gave it.
struct Entry {
    commit: Arc<Commit>,
    committed_at: EpochMillis,
}

/// An entry taken out of the lock, to be made a commit of its own outside.
pub(super) struct Found {
    commit: Arc<Commit>,
    receipt: AppendReceipt,
}

impl Found {
    pub(super) fn into_commit(self) -> Commit {
        let mut commit = Commit::clone(&self.commit);
        commit.position = self.receipt.position;
        commit.committed_at = self.receipt.committed_at;
        commit
    }

    /// The commit as its caller handed it in, without its receipt.
    pub(super) fn as_written(&self) -> &Commit {
        &self.commit
    }
}

impl Log {
    fn append(
        &mut self,
        commit: Arc<Commit>,
        now: EpochMillis,
    ) -> Result<AppendReceipt, AppendError> {
        let scope = self.scope_or_new(&commit.key);
        let hash_map::Entry::Vacant(request) = self.requests.entry(scope, &commit.request_id)
        else {
            return Err(AppendError::DuplicateRequest);
        };
        let versions = self.versions.entry(scope, &commit.key.id).or_default();
        continues(versions.len() as Version, commit.version)?;

        // The clock may step back; what the log says of time never does.
        let committed_at = now.max(self.newest_at);
        self.newest_at = committed_at;
        let entries = self.partitions.entry(commit.partition).or_default();
        let position = entries.len() as Position + 1;
        let place = Place {
            partition: commit.partition,
            position,
        };

        request.insert(place);
        versions.push(place);
        entries.push(Entry {
            commit,
            committed_at,
        });
        Ok(AppendReceipt {
            position,
            committed_at,
        })
    }

    fn scope_or_new(&mut self, key: &AggregateKey) -> Scope {
        if let Some((tenant, aggregate_type, scope)) = &self.newest_scope
            && *aggregate_type == key.aggregate_type
            && *tenant == key.tenant
        {
            return *scope;
        }
        let known = self.scope(&key.tenant, &key.aggregate_type);
        let scope = known.unwrap_or_else(|| self.new_scope(key));
        self.newest_scope = Some((key.tenant.clone(), key.aggregate_type.clone(), scope));
        scope
    }

    fn new_scope(&mut self, key: &AggregateKey) -> Scope {
        let scope = Scope(self.scopes_given);
        self.scopes_given += 1;
        let types = self.scopes.entry(key.tenant.clone()).or_default();
        types.insert(key.aggregate_type.clone(), scope);
        scope
    }

    fn scope(&self, tenant: &TenantId, aggregate_type: &AggregateType) -> Option<Scope> {
        self.scopes.get(tenant)?.get(aggregate_type).copied()
    }

    fn versions(&self, key: &AggregateKey) -> &[Place] {
        self.scope(&key.tenant, &key.aggregate_type)
            .and_then(|scope| self.versions.get(scope, &key.id))
            .map_or(&[], Vec::as_slice)
    }

    fn found(&self, place: Place) -> Found {
        let entry = &self.partitions[&place.partition][index(place.position - 1)];
        Found {
            commit: entry.commit.clone(),
            receipt: AppendReceipt {
                position: place.position,
                committed_at: entry.committed_at,
            },
        }
    }

    pub(super) fn newest_version(&self, key: &AggregateKey) -> Version {
        self.versions(key).len() as Version
    }

    /// The entries of an aggregate in `after + 1 ..= up_to`, at most `limit`, oldest first.
    pub(super) fn aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Vec<Found> {
        let versions = self.versions(key);
        let end = index(up_to).min(versions.len());
        let start = index(after).min(end);
        versions[start..end]
            .iter()
            .take(limit)
            .map(|place| self.found(*place))
            .collect()
    }

    pub(super) fn request(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Option<Found> {
        let scope = self.scope(tenant, aggregate_type)?;
        self.requests
            .get(scope, request_id)
            .map(|place| self.found(*place))
    }

    fn partition(&self, partition: PartitionNo, after: Position, limit: usize) -> Vec<Found> {
        let head = self.head(partition);
        (after.min(head) + 1..=head)
            .take(limit)
            .map(|position| {
                self.found(Place {
                    partition,
                    position,
                })
            })
            .collect()
    }

    fn head(&self, partition: PartitionNo) -> Position {
        self.partitions
            .get(&partition)
            .map_or(0, |entries| entries.len() as Position)
    }
}

/// Whether a version continues its aggregate: neither taken, nor behind a gap.
fn continues(newest: Version, version: Version) -> Result<(), AppendError> {
    if version == newest + 1 {
        return Ok(());
    }
    if version == 0 || version > newest {
        let reason = format!("version {version} can't follow version {newest}");
        return Err(AppendError::Refused(reason));
    }
    Err(AppendError::VersionConflict)
}

/// A number of the log as an index; what is too large for one is past every end.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Commits of their own, made where no lock is held.
pub(super) fn into_commits(found: Vec<Found>) -> Vec<Commit> {
    found.into_iter().map(Found::into_commit).collect()
}

#[async_trait]
impl CommitLog for MemoryStore {
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        // Inside the lock, so that the order of times is the order of commits.
        let mut log = self.inner.log.lock();
        let now = self.inner.clock.now();
        log.append(commit, now)
    }

    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let found = self.inner.log.lock().aggregate(key, after, up_to, limit);
        Ok(into_commits(found))
    }

    async fn read_partition(
        &self,
        partition: PartitionNo,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let found = self.inner.log.lock().partition(partition, after, limit);
        Ok(into_commits(found))
    }

    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError> {
        let log = self.inner.log.lock();
        Ok(partitions
            .iter()
            .map(|&partition| PartitionHead {
                partition,
                head: log.head(partition),
            })
            .collect())
    }
}
