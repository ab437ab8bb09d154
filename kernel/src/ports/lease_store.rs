//! Who is a member, and who owns which partition: leases in storage, by its own clock.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::StorageError;
use crate::id::{NodeName, PartitionNo};

/// Whether a member takes partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It does.
    Live,
    /// It is leaving.
    Draining,
}

/// A member, as its row says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: NodeName,
    /// Which life of that name (R70).
    pub incarnation: Uuid,
    /// Where its internal port is reached.
    pub address: String,
    /// Whether it takes partitions.
    pub state: MemberState,
    /// The oldest channel protocol it speaks.
    pub protocol_min: u16,
    /// The newest one.
    pub protocol_max: u16,
    /// How long its lease is still valid, by storage's clock; zero when expired.
    pub valid_for: Duration,
}

/// What came of claiming a name (R70).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberClaim {
    /// It is ours.
    Claimed,
    /// Another life of this name is live, for this long.
    Held(Duration),
}

/// The lease of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionLease {
    /// The partition.
    pub partition: PartitionNo,
    /// Its owner; none when free or released.
    pub owner: Option<(NodeName, Uuid)>,
    /// Raised whenever it is taken (R72).
    pub epoch: u64,
}

/// Stores leases. Times are set and judged by storage's clock, both ways.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Claims a name for a new incarnation. One that holds it already may claim it again, for the
    /// first answer may have been lost.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn claim(&self, member: &Member, ttl: Duration) -> Result<MemberClaim, StorageError>;

    /// Renews, where this incarnation's lease is still valid; `false` means lost (R70).
    ///
    /// # Errors
    /// [`StorageError`].
    async fn renew(&self, member: &Member, ttl: Duration) -> Result<bool, StorageError>;

    /// All members and all partition leases, in one round trip.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError>;

    /// Takes those of the partitions that are free, released or expired at the epochs seen, and
    /// answers with the leases taken (R72). Never from a live member.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, StorageError>;

    /// Releases leases that are still ours.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn release(&self, owner: &Member, partitions: &[PartitionNo])
    -> Result<(), StorageError>;

    /// Ends a membership of ours.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn leave(&self, member: &Member) -> Result<(), StorageError>;
}
