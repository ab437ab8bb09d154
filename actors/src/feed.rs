//! The state views of one partition, from the lanes that commit to the runners that follow (R55).
//!
//! A feed is a bounded window, ordered by position. A runner takes what continues its place;
//! what is missing, because it came from elsewhere or fell out of the window, it reads from the
//! log (R80). So a lane never waits for a runner, and nothing is lost when one is slow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wow_kernel::commit::StateView;
use wow_kernel::id::{PartitionNo, Position};

/// How many state views one partition keeps.
const WINDOW: usize = 256;

/// The newest commits of one partition.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    window: Mutex<BTreeMap<Position, StateView>>,
    /// The highest position heard of, whether or not its view is here.
    head: AtomicU64,
    grown: Notify,
    /// The highest position whose snapshot a caller waits for.
    wanted: AtomicU64,
    wanted_more: Notify,
}

impl Feed {
    fn offer(&self, view: StateView, is_waited_for: bool) {
        let position = view.commit.position;
        {
            let mut window = self.window.lock();
            window.insert(position, view);
            if window.len() > WINDOW {
                window.pop_first();
            }
        }
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

    /// The views that continue a position without a hole, at most so many.
    pub(crate) fn after(&self, position: Position, most: usize) -> Vec<StateView> {
        let window = self.window.lock();
        let mut views = Vec::new();
        for (found, view) in window.range(position + 1..).take(most) {
            if *found != position + 1 + views.len() as Position {
                break;
            }
            views.push(view.clone());
        }
        views
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

    /// Waits a moment for the view that continues a position: its lane may be about to offer it.
    pub(crate) async fn settle(&self, wait: Duration) {
        let _ = tokio::time::timeout(wait, self.grown.notified()).await;
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

    /// Hands a commit and the state after it to the partition's runners.
    /// `is_waited_for` says that a caller waits for its snapshot.
    pub(crate) fn offer(&self, view: StateView, is_waited_for: bool) {
        self.of(view.commit.partition).offer(view, is_waited_for);
    }

    pub(crate) fn of(&self, partition: PartitionNo) -> &Feed {
        // Partitions are computed modulo the number of feeds.
        &self.0[partition.0 as usize]
    }
}
