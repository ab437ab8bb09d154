//! Who owns which partition as far as this node knows, and where its supervisors are.

use std::fmt;
use std::sync::{Arc, OnceLock};

use actix::Addr;
use arc_swap::ArcSwap;
use wow_kernel::id::PartitionNo;
use wow_kernel::router::PartitionOwner;

use crate::admission::AdmissionActor;
use crate::supervisor::PartitionSupervisor;
use crate::waits::Waits;

/// The node's routing table and the addresses behind it.
pub(crate) struct Routing {
    owners: ArcSwap<Vec<PartitionOwner>>,
    addresses: OnceLock<Addresses>,
}

/// The addresses of the tree, set once it stands.
pub(crate) struct Addresses {
    pub(crate) admissions: Vec<Addr<AdmissionActor>>,
    pub(crate) supervisors: Vec<Addr<PartitionSupervisor>>,
    pub(crate) waits: Vec<Addr<Waits>>,
}

impl fmt::Debug for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routing")
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}

impl Routing {
    /// A table in which every partition has this owner.
    pub(crate) fn all(owner: &PartitionOwner, partitions: u32) -> Self {
        let owners = vec![owner.clone(); partitions as usize];
        Self {
            owners: ArcSwap::from_pointee(owners),
            addresses: OnceLock::new(),
        }
    }

    pub(crate) fn owner(&self, partition: PartitionNo) -> PartitionOwner {
        let owners = self.owners.load();
        owners
            .get(partition.0 as usize)
            .cloned()
            .unwrap_or(PartitionOwner::Unknown)
    }

    pub(crate) fn set_owners(&self, owners: Vec<PartitionOwner>) {
        self.owners.store(Arc::new(owners));
    }

    pub(crate) fn set_addresses(&self, addresses: Addresses) {
        // Set by the system's start alone, before anything can send.
        let _ = self.addresses.set(addresses);
    }

    pub(crate) fn addresses(&self) -> Option<&Addresses> {
        self.addresses.get()
    }
}
