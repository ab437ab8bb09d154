//! The state views of one partition, from the lanes that commit to the runners that follow (R55).
//!
//! A feed is a window, ordered by position, bounded in views and in bytes. A runner takes what
//! continues its place; what is missing, because it came from elsewhere or fell out of the
//! window, it reads from the log (R80). So a lane never waits for a runner, and nothing is lost
//! when one is slow. What every runner has passed goes at once: a view holds a whole state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wow_kernel::commit::StateView;
use wow_kernel::id::{PartitionNo, Position};

/// How many state views one partition keeps at most, …
const WINDOW: usize = 256;

/// … and how many bytes of them, roughly.
const WINDOW_BYTES: usize = 4 * 1024 * 1024;

/// How far a runner has come that has ended: nothing is kept for it, and its place is free.
const GONE: Position = Position::MAX;

/// The newest commits of one partition.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    window: Mutex<Window>,
    /// The highest position heard of, whether or not its view is here.
    head: AtomicU64,
    grown: Notify,
    /// The highest position whose snapshot a caller waits for.
    wanted: AtomicU64,
    wanted_more: Notify,
}

#[derive(Debug, Default)]
struct Window {
    views: BTreeMap<Position, Weighed>,
    bytes: usize,
    /// How far each runner has come.
    passed: Vec<Position>,
}

#[derive(Debug)]
struct Weighed {
    view: StateView,
    bytes: usize,
}

/// What a feed has for a runner.
#[derive(Debug)]
pub(crate) enum Next {
    /// The views that continue its place, without a hole.
    Views(Vec<StateView>),
    /// So many entries are missing before the next view, or all that there are.
    Hole(usize),
}

impl Window {
    fn insert(&mut self, position: Position, weighed: Weighed) {
        self.bytes += weighed.bytes;
        if let Some(before) = self.views.insert(position, weighed) {
            self.bytes -= before.bytes;
        }
        while self.views.len() > WINDOW || self.bytes > WINDOW_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, weighed)) = self.views.pop_first() {
            self.bytes -= weighed.bytes;
        }
    }

    fn is_followed(&self) -> bool {
        self.passed.iter().any(|passed| *passed != GONE)
    }

    /// Drops what every runner has passed.
    fn prune(&mut self) {
        let passed = self.passed.iter().copied().min().unwrap_or(GONE);
        while self
            .views
            .first_key_value()
            .is_some_and(|(first, _)| *first <= passed)
        {
            self.pop();
        }
    }

    fn after(&self, position: Position, most: usize) -> Next {
        let mut views = Vec::new();
        for (found, weighed) in self.views.range(position + 1..).take(most) {
            let missing = found - (position + 1 + views.len() as Position);
            if missing > 0 && views.is_empty() {
                return Next::Hole(usize::try_from(missing).unwrap_or(usize::MAX));
            }
            if missing > 0 {
                break;
            }
            views.push(weighed.view.clone());
        }
        match views.is_empty() {
            true => Next::Hole(usize::MAX),
            false => Next::Views(views),
        }
    }
}

impl Feed {
    fn offer(&self, view: StateView, bytes: usize, is_waited_for: bool) {
        let position = view.commit.position;
        let mut window = self.window.lock();
        // Nobody here follows a partition of another node.
        if window.is_followed() {
            window.insert(position, Weighed { view, bytes });
        }
        drop(window);
        self.note_head(position);
        if is_waited_for {
            self.wanted.fetch_max(position, Ordering::AcqRel);
            self.wanted_more.notify_waiters();
        }
    }

    /// The partition is known to reach this position.
    pub(crate) fn note_head(&self, position: Position) {
        self.head.fetch_max(position, Ordering::AcqRel);
        self.grown.notify_waiters();
    }

    /// The highest position heard of.
    pub(crate) fn head(&self) -> Position {
        self.head.load(Ordering::Acquire)
    }

    /// Adds a runner that has come to a position; its place is answered.
    pub(crate) fn join(&self, position: Position) -> usize {
        let mut window = self.window.lock();
        let free = window.passed.iter().position(|passed| *passed == GONE);
        let place = free.unwrap_or(window.passed.len());
        match free {
            Some(place) => window.passed[place] = position,
            None => window.passed.push(position),
        }
        place
    }

    /// The runner with this place ends; nothing is kept for it any more.
    pub(crate) fn leave(&self, place: usize) {
        let mut window = self.window.lock();
        window.passed[place] = GONE;
        window.prune();
    }

    /// What continues a position, for the runner with this place, at most so many.
    pub(crate) fn after(&self, place: usize, position: Position, most: usize) -> Next {
        let mut window = self.window.lock();
        if window.passed[place] != position {
            window.passed[place] = position;
            window.prune();
        }
        window.after(position, most)
    }

    /// The views that continue a position, once there are any.
    pub(crate) async fn continued(
        &self,
        place: usize,
        position: Position,
        most: usize,
    ) -> Vec<StateView> {
        loop {
            let grown = self.grown.notified();
            tokio::pin!(grown);
            // Registered before the look, so that a view offered between the two is not missed.
            grown.as_mut().enable();
            if let Next::Views(views) = self.after(place, position, most) {
                return views;
            }
            grown.await;
        }
    }

    /// Ends once the partition has grown beyond a position.
    pub(crate) async fn grown_beyond(&self, position: Position) {
        beyond(&self.head, &self.grown, position).await;
    }

    /// Ends once a caller waits for the snapshot of a commit beyond a position.
    pub(crate) async fn wanted_beyond(&self, position: Position) {
        beyond(&self.wanted, &self.wanted_more, position).await;
    }

    /// Ends once the partition has grown by so many entries beyond a position.
    pub(crate) async fn grown_by(&self, entries: u64, position: Position) {
        beyond(&self.head, &self.grown, position + entries - 1).await;
    }
}

async fn beyond(mark: &AtomicU64, moved: &Notify, position: Position) {
    loop {
        let moved = moved.notified();
        tokio::pin!(moved);
        // Registered before the look, so that a move between the two is not missed.
        moved.as_mut().enable();
        if mark.load(Ordering::Acquire) > position {
            return;
        }
        moved.await;
    }
}

/// The feeds of every partition.
#[derive(Debug)]
pub(crate) struct Feeds(Vec<Feed>);

impl Feeds {
    pub(crate) fn new(partitions: u32) -> Self {
        Self((0..partitions).map(|_| Feed::default()).collect())
    }

    /// Hands a commit and the state after it, which take so many bytes, to the partition's
    /// runners. `is_waited_for` says that a caller waits for its snapshot.
    pub(crate) fn offer(&self, view: StateView, bytes: usize, is_waited_for: bool) {
        self.of(view.commit.partition)
            .offer(view, bytes, is_waited_for);
    }

    pub(crate) fn of(&self, partition: PartitionNo) -> &Feed {
        // Partitions are computed modulo the number of feeds.
        &self.0[partition.0 as usize]
    }
}
