//! What a member does about its partitions (R70 to R74): a pure comparison of what it should own,
//! what the leases say, and what it runs.
//!
//! A node looks at this after every renewal and repairs every difference, so that nothing hangs
//! on a message that came: a hint may be lost, a take refused, a start fail, and the next look
//! mends it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use crate::assignment::assigned;
use crate::id::{NodeName, PartitionNo};
use crate::ports::{Member, MemberState, PartitionLease};
use crate::router::PartitionOwner;

/// What one look at storage showed, and what this node runs.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// This node.
    pub me: &'a Member,
    /// Every member's row.
    pub members: &'a [Member],
    /// Every partition's lease; one that was never taken has none.
    pub leases: &'a [PartitionLease],
    /// The number of partitions.
    pub partitions: u32,
    /// What this node runs, and at which epoch.
    pub running: &'a HashMap<PartitionNo, u64>,
}

/// What there is to do about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Run here, but the lease is another's or of another epoch by now: to be ended at once.
    pub lost: Vec<PartitionNo>,
    /// Run here, and should be another's: to be handed over (R73).
    pub hand_over: Vec<PartitionNo>,
    /// Ours by lease, not run, and should be another's: only the row is to be released.
    pub release: Vec<PartitionNo>,
    /// Ours by lease, not run, and should be ours: to be started.
    pub start: Vec<PartitionLease>,
    /// Should be ours, and are free, released or expired: to be taken at these epochs (R72).
    pub take: Vec<PartitionLease>,
    /// Should be ours, and are held by another live member, which will hand them over.
    pub awaited: Vec<PartitionNo>,
    /// Who owns each partition, as far as the leases say.
    pub owners: Vec<PartitionOwner>,
    /// When the first lease of another member expires, unless it is renewed: a dead member is
    /// noticed then.
    pub look_again_in: Option<Duration>,
}

impl Repairs {
    /// Whether this node runs all that it should own.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.start.is_empty() && self.take.is_empty() && self.awaited.is_empty()
    }
}

impl Look<'_> {
    /// Compares.
    #[must_use]
    pub fn repairs(&self) -> Repairs {
        let live: HashSet<(&NodeName, Uuid)> = self
            .members
            .iter()
            .filter(|member| !member.valid_for.is_zero())
            .map(|member| (&member.name, member.incarnation))
            .collect();
        let candidates: Vec<&NodeName> = self
            .members
            .iter()
            .filter(|member| !member.valid_for.is_zero() && member.state == MemberState::Live)
            .map(|member| &member.name)
            .collect();
        let mut leases: HashMap<PartitionNo, &PartitionLease> = HashMap::new();
        for lease in self.leases {
            leases.insert(lease.partition, lease);
        }
        let mut repairs = Repairs {
            look_again_in: self.first_expiry(),
            ..Repairs::default()
        };
        for partition in (0..self.partitions).map(PartitionNo) {
            let should_be_ours =
                assigned(partition, candidates.iter().copied()) == Some(&self.me.name);
            let never_taken = PartitionLease {
                partition,
                owner: None,
                epoch: 0,
            };
            let lease = leases
                .get(&partition)
                .map_or(never_taken, |lease| (*lease).clone());
            let owner = lease
                .owner
                .as_ref()
                .filter(|(name, incarnation)| live.contains(&(name, *incarnation)));
            let is_ours = owner.is_some_and(|(name, incarnation)| {
                *name == self.me.name && *incarnation == self.me.incarnation
            });
            repairs.owners.push(match owner {
                None => PartitionOwner::Unknown,
                Some(_) if is_ours => PartitionOwner::Here,
                Some((name, _)) => PartitionOwner::Peer(name.clone()),
            });
            let is_held = owner.is_some();
            self.compare(&mut repairs, lease, should_be_ours, is_ours, is_held);
        }
        repairs
    }

    fn compare(
        &self,
        repairs: &mut Repairs,
        lease: PartitionLease,
        should_be_ours: bool,
        is_ours: bool,
        is_held: bool,
    ) {
        let partition = lease.partition;
        let runs = match self.running.get(&partition) {
            Some(epoch) if is_ours && *epoch == lease.epoch => true,
            Some(_) => {
                repairs.lost.push(partition);
                false
            }
            None => false,
        };
        match (should_be_ours, is_ours, runs) {
            (true, true, true) => {}
            (true, true, false) => repairs.start.push(lease),
            (true, false, _) if is_held => repairs.awaited.push(partition),
            (true, false, _) => repairs.take.push(lease),
            (false, true, true) => repairs.hand_over.push(partition),
            (false, true, false) => repairs.release.push(partition),
            (false, false, _) => {}
        }
    }

    fn first_expiry(&self) -> Option<Duration> {
        self.members
            .iter()
            .filter(|member| member.name != self.me.name && !member.valid_for.is_zero())
            .map(|member| member.valid_for)
            .min()
    }
}

#[cfg(test)]
mod tests;
