//! The node's lanes: which aggregate has one, and how many commands each has in flight.
//!
//! One shard for each partition, so that a supervisor that takes a partition finds the lanes that
//! local fallbacks started, and there are never two lanes of one aggregate (R30). A lane's gate
//! closes only from zero, and commands enter it under the shard's lock: a lane that stops has
//! nothing queued, and a command that comes later starts a new one (R32). A lane that dies all
//! the same gives back what is queued, as [`Enqueued`] says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::Addr;
use actix::dev::SendError;
use hashlink::LinkedHashMap;
use parking_lot::Mutex;
use wow_kernel::id::{AggregateKey, PartitionNo};

use crate::lane::{Enqueued, Lane, RunCommand};
use crate::shared::Shared;

const CLOSED: usize = 1 << (usize::BITS - 1);

/// How many idle lanes one dispatch removes at most, when there are too many.
const EVICTIONS: usize = 4;

/// Counts the commands of one lane; closes only when there are none.
#[derive(Debug, Default)]
struct Gate(AtomicUsize);

enum Entry {
    Entered,
    Full,
    Closed,
}

impl Gate {
    fn enter(&self, bound: usize) -> Entry {
        let mut count = self.0.load(Ordering::Acquire);
        loop {
            if count & CLOSED != 0 {
                return Entry::Closed;
            }
            if count >= bound {
                return Entry::Full;
            }
            match self.0.compare_exchange_weak(
                count,
                count + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Entry::Entered,
                Err(now) => count = now,
            }
        }
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    fn close_if_idle(&self) -> bool {
        self.0
            .compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Closes whatever is inside: its lane is dead.
    fn close(&self) {
        self.0.fetch_or(CLOSED, Ordering::AcqRel);
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Acquire) & !CLOSED
    }
}

/// What the directory and the lane itself share.
#[derive(Debug)]
pub(crate) struct LaneRecord {
    gate: Gate,
    /// Roughly what its state takes, as the lane measured it.
    bytes: AtomicUsize,
    totals: Arc<Totals>,
    /// Where a command goes back that a dead lane had queued.
    home: Weak<Shared>,
}

#[derive(Debug, Default)]
struct Totals {
    lanes: AtomicUsize,
    bytes: AtomicUsize,
}

impl LaneRecord {
    /// The lane's state takes this much now.
    pub(crate) fn set_bytes(&self, bytes: usize) {
        let before = self.bytes.swap(bytes, Ordering::AcqRel);
        self.totals.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.totals.bytes.fetch_sub(before, Ordering::AcqRel);
    }
}

impl Drop for LaneRecord {
    fn drop(&mut self) {
        self.totals
            .bytes
            .fetch_sub(self.bytes.load(Ordering::Acquire), Ordering::AcqRel);
    }
}

/// A command's place in a lane; counts down when dropped, whatever happens.
#[derive(Debug)]
pub(crate) struct Slot(Arc<LaneRecord>);

impl Slot {
    /// The node, while it runs.
    pub(crate) fn home(&self) -> Option<Arc<Shared>> {
        self.0.home.upgrade()
    }

    /// Roughly what the lane's state takes.
    pub(crate) fn state_bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}

struct LaneEntry {
    record: Arc<LaneRecord>,
    address: Addr<Lane>,
    used: Duration,
}

type Shard = LinkedHashMap<AggregateKey, LaneEntry>;

/// Every lane of the node.
pub(crate) struct LaneDirectory {
    shards: Vec<Mutex<Shard>>,
    totals: Arc<Totals>,
    queue: usize,
    lanes_max: usize,
    bytes_max: usize,
    /// Which shard makes room next where the one in use can't.
    next_shard: AtomicUsize,
}

/// The lane's queue is full; the command comes back.
pub(crate) struct LaneFull(pub(crate) RunCommand);

impl LaneDirectory {
    pub(crate) fn new(partitions: u32, queue: usize, lanes_max: usize, bytes_max: usize) -> Self {
        let shards = (0..partitions).map(|_| Mutex::default()).collect();
        Self {
            shards,
            totals: Arc::default(),
            queue,
            lanes_max,
            bytes_max,
            next_shard: AtomicUsize::new(0),
        }
    }

    /// Sends a command to its aggregate's lane, making one where there is none.
    ///
    /// # Errors
    /// [`LaneFull`] when the lane's queue is at its bound (R31).
    pub(crate) fn send(
        &self,
        shared: &Arc<Shared>,
        partition: PartitionNo,
        mut run: RunCommand,
    ) -> Result<(), LaneFull> {
        // Near enough to now, and no look at the clock.
        let now = run.arrived();
        let mut shard = self.shard(partition).lock();
        loop {
            let key = run.command.key();
            let Some(entry) = shard.to_back(key) else {
                let key = key.clone();
                self.make_room(shared, &mut shard, 1);
                shard.insert(key, self.new_entry(now, shared));
                continue;
            };
            entry.used = entry.used.max(now);
            match entry.gate().enter(self.queue) {
                Entry::Full => return Err(LaneFull(run)),
                Entry::Closed => {}
                Entry::Entered => {
                    let slot = Slot(Arc::clone(&entry.record));
                    // Under the shard's lock, so that arrival order is queue order (R30).
                    match entry.address.try_send(Enqueued::new(run, slot)) {
                        Ok(()) => {
                            self.make_room(shared, &mut shard, 0);
                            return Ok(());
                        }
                        // The mailbox is larger than the gate's bound; should it be full all the
                        // same, the lane lives and is busy.
                        Err(SendError::Full(returned)) => return Err(LaneFull(returned.take().0)),
                        Err(SendError::Closed(returned)) => {
                            entry.gate().close();
                            run = returned.take().0;
                        }
                    }
                }
            }
            self.remove(&mut shard, run.command.key());
        }
    }

    /// Ends every lane of a partition; none can be made after it, for its supervisor ends too.
    pub(crate) fn end(&self, partition: PartitionNo) {
        let mut shard = self.shard(partition).lock();
        self.totals.lanes.fetch_sub(shard.len(), Ordering::AcqRel);
        for (_, entry) in shard.drain() {
            entry.record.set_bytes(0);
        }
    }

    fn new_entry(&self, now: Duration, shared: &Arc<Shared>) -> LaneEntry {
        let record = Arc::new(LaneRecord {
            gate: Gate::default(),
            bytes: AtomicUsize::new(0),
            totals: Arc::clone(&self.totals),
            home: Arc::downgrade(shared),
        });
        self.totals.lanes.fetch_add(1, Ordering::AcqRel);
        LaneEntry {
            address: Lane::spawn(shared, Arc::clone(&record)),
            record,
            used: now,
        }
    }

    fn remove(&self, shard: &mut Shard, key: &AggregateKey) {
        if let Some(entry) = shard.remove(key) {
            self.totals.lanes.fetch_sub(1, Ordering::AcqRel);
            // Its lane ends in a moment; counting that until then would end others for it.
            entry.record.set_bytes(0);
        }
    }

    fn is_over(&self, lanes_to_come: usize) -> bool {
        self.lanes() + lanes_to_come > self.lanes_max || self.state_bytes() > self.bytes_max
    }

    /// Removes the least recently used idle lanes while the node has too many, or their states
    /// take too much (R33): of this shard first, then of one other, each in turn.
    fn make_room(&self, shared: &Shared, shard: &mut Shard, lanes_to_come: usize) {
        if !self.is_over(lanes_to_come) {
            return;
        }
        let goes = |_: &LaneEntry| self.is_over(lanes_to_come);
        let mut gone = self.evict(shard, EVICTIONS, goes);
        if self.is_over(lanes_to_come) {
            let other = self.next_shard.fetch_add(1, Ordering::Relaxed) % self.shards.len();
            // Never waits for a second lock, so that two supervisors can't wait for each other.
            if let Some(mut other) = self.shards[other].try_lock() {
                gone += self.evict(&mut other, EVICTIONS, goes);
            }
        }
        shared.metrics.lanes_passivated(gone);
    }

    fn evict(&self, shard: &mut Shard, most: usize, goes: impl Fn(&LaneEntry) -> bool) -> usize {
        let idle: Vec<AggregateKey> = shard
            .iter()
            .take_while(|(_, entry)| goes(entry))
            .filter(|(_, entry)| entry.gate().count() == 0)
            .take(most)
            .map(|(key, _)| key.clone())
            .collect();
        let mut gone = 0;
        for key in idle {
            // Its address goes with it, and so the lane: nothing is queued behind a closed gate.
            let closed = shard
                .get(&key)
                .is_some_and(|entry| goes(entry) && entry.gate().close_if_idle());
            if closed {
                self.remove(shard, &key);
                gone += 1;
            }
        }
        gone
    }

    /// Ends the lanes of a partition that were idle this long, and idle ones beyond the bounds
    /// (R33). Answers how many went.
    pub(crate) fn passivate(
        &self,
        partition: PartitionNo,
        now: Duration,
        idle_timeout: Duration,
    ) -> usize {
        let mut shard = self.shard(partition).lock();
        let old = |entry: &LaneEntry| now.saturating_sub(entry.used) >= idle_timeout;
        let most = shard.len();
        self.evict(&mut shard, most, old) + self.evict(&mut shard, most, |_| self.is_over(0))
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> usize {
        self.totals.lanes.load(Ordering::Acquire)
    }

    /// Roughly how many bytes their states take.
    pub(crate) fn state_bytes(&self) -> usize {
        self.totals.bytes.load(Ordering::Acquire)
    }

    /// How many lanes have commands in flight.
    pub(crate) fn busy_lanes(&self) -> usize {
        let busy = |shard: &Mutex<Shard>| {
            shard
                .lock()
                .values()
                .filter(|entry| entry.gate().count() > 0)
                .count()
        };
        self.shards.iter().map(busy).sum()
    }

    fn shard(&self, partition: PartitionNo) -> &Mutex<Shard> {
        // Partitions are computed modulo the number of shards.
        &self.shards[partition.0 as usize]
    }
}

impl LaneEntry {
    fn gate(&self) -> &Gate {
        &self.record.gate
    }
}
