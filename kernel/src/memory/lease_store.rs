//! Members and partition leases in memory, judged by the store's monotonic clock: it never steps,
//! so a lease lasts as long as was said.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::MemoryStore;
use crate::id::{NodeName, PartitionNo};
use crate::ports::{LeaseStore, Member, MemberClaim, PartitionLease, StorageError};

/// Every member that has not left, and every partition that was ever taken.
#[derive(Default)]
pub(super) struct Leases {
    members: BTreeMap<NodeName, MemberRow>,
    partitions: BTreeMap<PartitionNo, PartitionLease>,
}

struct MemberRow {
    member: Member,
    expires_at: Duration,
}

impl MemberRow {
    fn valid_for(&self, now: Duration) -> Duration {
        self.expires_at.saturating_sub(now)
    }

    fn is_live(&self, incarnation: Uuid, now: Duration) -> bool {
        self.member.incarnation == incarnation && !self.valid_for(now).is_zero()
    }
}

impl Leases {
    fn claim(&mut self, member: &Member, ttl: Duration, now: Duration) -> MemberClaim {
        if let Some(row) = self.members.get(&member.name) {
            let valid_for = row.valid_for(now);
            if row.member.incarnation != member.incarnation && !valid_for.is_zero() {
                return MemberClaim::Held(valid_for);
            }
        }
        self.put(member, now + ttl);
        MemberClaim::Claimed
    }

    fn renew(&mut self, member: &Member, ttl: Duration, now: Duration) -> bool {
        let live = self.is_live(&member.name, member.incarnation, now);
        if live {
            self.put(member, now + ttl);
        }
        live
    }

    fn put(&mut self, member: &Member, expires_at: Duration) {
        let row = MemberRow {
            member: member.clone(),
            expires_at,
        };
        self.members.insert(member.name.clone(), row);
    }

    fn is_live(&self, name: &NodeName, incarnation: Uuid, now: Duration) -> bool {
        self.members
            .get(name)
            .is_some_and(|row| row.is_live(incarnation, now))
    }

    fn view(&self, now: Duration) -> (Vec<Member>, Vec<PartitionLease>) {
        let members = self
            .members
            .values()
            .map(|row| Member {
                valid_for: row.valid_for(now),
                ..row.member.clone()
            })
            .collect();
        (members, self.partitions.values().cloned().collect())
    }

    /// Takes a partition as it was seen, unless its owner is live or it has changed hands (R72).
    fn take(
        &mut self,
        owner: &Member,
        seen: &PartitionLease,
        now: Duration,
    ) -> Option<PartitionLease> {
        let stored = self.partitions.get(&seen.partition);
        let held = stored
            .and_then(|lease| lease.owner.as_ref())
            .is_some_and(|(name, incarnation)| self.is_live(name, *incarnation, now));
        if held || stored.map_or(0, |lease| lease.epoch) != seen.epoch {
            return None;
        }
        let lease = PartitionLease {
            partition: seen.partition,
            owner: Some((owner.name.clone(), owner.incarnation)),
            epoch: seen.epoch + 1,
        };
        self.partitions.insert(seen.partition, lease.clone());
        Some(lease)
    }

    fn release(&mut self, owner: &Member, partition: PartitionNo) {
        let Some(lease) = self.partitions.get_mut(&partition) else {
            return;
        };
        let ours = lease.owner.as_ref().is_some_and(|(name, incarnation)| {
            *name == owner.name && *incarnation == owner.incarnation
        });
        if ours {
            lease.owner = None;
        }
    }

    fn leave(&mut self, member: &Member) {
        let row = self.members.get(&member.name);
        if row.is_some_and(|row| row.member.incarnation == member.incarnation) {
            self.members.remove(&member.name);
        }
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    async fn claim(&self, member: &Member, ttl: Duration) -> Result<MemberClaim, StorageError> {
        let now = self.inner.clock.monotonic();
        Ok(self.inner.leases.lock().claim(member, ttl, now))
    }

    async fn renew(&self, member: &Member, ttl: Duration) -> Result<bool, StorageError> {
        let now = self.inner.clock.monotonic();
        Ok(self.inner.leases.lock().renew(member, ttl, now))
    }

    async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError> {
        let now = self.inner.clock.monotonic();
        Ok(self.inner.leases.lock().view(now))
    }

    async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, StorageError> {
        let now = self.inner.clock.monotonic();
        let mut leases = self.inner.leases.lock();
        Ok(seen
            .iter()
            .filter_map(|lease| leases.take(owner, lease, now))
            .collect())
    }

    async fn release(
        &self,
        owner: &Member,
        partitions: &[PartitionNo],
    ) -> Result<(), StorageError> {
        let mut leases = self.inner.leases.lock();
        for partition in partitions {
            leases.release(owner, *partition);
        }
        Ok(())
    }

    async fn leave(&self, member: &Member) -> Result<(), StorageError> {
        self.inner.leases.lock().leave(member);
        Ok(())
    }
}
