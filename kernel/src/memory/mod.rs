//! The ports in memory: their executable specification, and the backend of tests, benches, the
//! simulator and nodes that may forget.
//!
//! ```text
//! commit_log       CommitLog: the log and its two unique keys
//! history          History, read from the log and the snapshots
//! request_lookup   RequestLookup, read from the log
//! snapshot_store   SnapshotStore
//! checkpoint_store CheckpointStore
//! lease_store      LeaseStore
//! clock            ManualClock: time that a test owns
//! random           SeededRandom: ids and jitter that a seed decides
//! ```
//!
//! The log's two unique keys are maps of the module `index`, which grow in small steps.
//!
//! Every method does all of its work when it is first polled and never waits, so a caller that
//! goes away leaves nothing half done. Each concern has a lock of its own; no two of them are
//! ever held together, and none is held across an await.

mod checkpoint_store;
mod clock;
mod commit_log;
mod history;
mod index;
mod lease_store;
mod random;
mod request_lookup;
mod snapshot_store;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use self::checkpoint_store::Checkpoints;
use self::commit_log::Log;
use self::lease_store::Leases;
use self::snapshot_store::Snapshots;
use crate::ports::Clock;

pub use self::clock::ManualClock;
pub use self::random::SeededRandom;
#[cfg(any(test, feature = "faults"))]
pub(crate) use self::random::mix;

/// Ids are hashed for every command: fast, and seeded, so that they can't be chosen to collide.
type Hashing = foldhash::fast::RandomState;

type HashMap<K, V> = std::collections::HashMap<K, V, Hashing>;

/// A store that holds everything in memory, and implements every storage port.
///
/// Clones share one store, as the connections to one database do: a cluster in one process gives
/// each node a clone.
///
/// ```
/// use std::sync::Arc;
/// use wow_kernel::memory::{ManualClock, MemoryStore};
///
/// let store = MemoryStore::new(Arc::new(ManualClock::new()));
/// let another_node = store.clone();
/// # drop((store, another_node));
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    log: Mutex<Log>,
    snapshots: Mutex<Snapshots>,
    checkpoints: Mutex<Checkpoints>,
    leases: Mutex<Leases>,
}

impl MemoryStore {
    /// An empty store. The clock is the store's own: it stamps commits and snapshots, and judges
    /// leases.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            inner: Arc::new(Inner {
                clock,
                log: Mutex::default(),
                snapshots: Mutex::default(),
                checkpoints: Mutex::default(),
                leases: Mutex::default(),
            }),
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
