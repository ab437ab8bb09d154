//! The state views of one partition, from the lanes that commit to the runners that follow (R55).
//!
//! A feed is a window, ordered by position, bounded in views and in bytes. A runner takes what
//! continues its place; what is missing, because it came from elsewhere or fell out of the
//! window, it reads from the log (R80). So a lane never waits for a runner, and nothing is lost
//! when one is slow. What every runner has passed goes at once: a view holds a whole state.

use std::collections::VecDeque;
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
    head: Mark,
    /// The highest position whose snapshot a caller waits for.
    wanted: Mark,
}

/// A position that only moves forward, and those who wait until it has passed another.
///
/// A runner that gathers commits must not be woken by each of them: that costs more than the
/// command itself. So a move wakes nobody before it passes a position that somebody waits for.
#[derive(Debug)]
struct Mark {
    reached: AtomicU64,
    /// No waiter waits for less than what lies beyond this.
    awaited: AtomicU64,
    moved: Notify,
}

impl Default for Mark {
    fn default() -> Self {
        Self {
            reached: AtomicU64::new(0),
            awaited: AtomicU64::new(Position::MAX),
            moved: Notify::new(),
        }
    }
}

impl Mark {
    fn get(&self) -> Position {
        self.reached.load(Ordering::Acquire)
    }

    /// Moves forward to a position, if it is not there yet, and wakes those who wait for less.
    fn raise(&self, position: Position) {
        // In one order with what a waiter does: it sees this position, or is seen waiting here.
        let before = self.reached.fetch_max(position, Ordering::SeqCst);
        if before.max(position) > self.awaited.load(Ordering::SeqCst) {
            // Those who are woken for less than they wait for say so again.
            self.awaited.store(Position::MAX, Ordering::SeqCst);
            self.moved.notify_waiters();
        }
    }

    /// Waits until a look finds something. It looks again once the mark has moved beyond a
    /// position, and perhaps earlier.
    async fn look<T>(&self, position: Position, look: impl Fn() -> Option<T>) -> T {
        loop {
            // Without saying so first: whoever need not wait leaves no mark that wakes others.
            if let Some(found) = look() {
                return found;
            }
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the next look, so that a move between the two is not missed.
            moved.as_mut().enable();
            self.awaited.fetch_min(position, Ordering::SeqCst);
            if let Some(found) = look() {
                return found;
            }
            moved.await;
        }
    }

    /// Ends once the mark is beyond a position.
    async fn beyond(&self, position: Position) {
        let is_beyond = || (self.reached.load(Ordering::SeqCst) > position).then_some(());
        self.look(position, is_beyond).await;
    }
}

#[derive(Debug, Default)]
struct Window {
    /// In the order of their positions, which is nearly that in which they come.
    views: VecDeque<Weighed>,
    bytes: usize,
    /// How far each runner has come.
    passed: Vec<Position>,
}

#[derive(Debug)]
struct Weighed {
    view: StateView,
    bytes: usize,
}

impl Weighed {
    fn position(&self) -> Position {
        self.view.commit.position
    }
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
        let is_newest = self.newest().is_none_or(|newest| newest < position);
        match is_newest {
            true => self.views.push_back(weighed),
            false => self.insert_between(position, weighed),
        }
        while self.views.len() > WINDOW || self.bytes > WINDOW_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(weighed) = self.views.pop_front() {
            self.bytes -= weighed.bytes;
        }
    }

    fn insert_between(&mut self, position: Position, weighed: Weighed) {
        let place = (self.views).binary_search_by_key(&position, Weighed::position);
        match place {
            Ok(place) => {
                let before = std::mem::replace(&mut self.views[place], weighed);
                self.bytes -= before.bytes;
            }
            Err(place) => self.views.insert(place, weighed),
        }
    }

    fn newest(&self) -> Option<Position> {
        self.views.back().map(Weighed::position)
    }

    fn is_followed(&self) -> bool {
        self.passed.iter().any(|passed| *passed != GONE)
    }

    /// Drops what every runner has passed.
    fn prune(&mut self) {
        let passed = self.passed.iter().copied().min().unwrap_or(GONE);
        while self
            .views
            .front()
            .is_some_and(|first| first.position() <= passed)
        {
            self.pop();
        }
    }

    fn after(&self, position: Position, most: usize) -> Next {
        let first = self
            .views
            .partition_point(|weighed| weighed.position() <= position);
        let mut views = Vec::with_capacity(most.min(self.views.len() - first));
        for weighed in self.views.range(first..).take(most) {
            let missing = weighed.position() - (position + 1 + views.len() as Position);
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
            self.wanted.raise(position);
        }
    }

    /// The partition is known to reach this position.
    pub(crate) fn note_head(&self, position: Position) {
        self.head.raise(position);
    }

    /// The highest position heard of.
    pub(crate) fn head(&self) -> Position {
        self.head.get()
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
        let views = || match self.after(place, position, most) {
            Next::Views(views) => Some(views),
            Next::Hole(_) => None,
        };
        // What fills a hole need not raise the head: whatever is offered is looked at.
        self.head.look(0, views).await
    }

    /// Ends once the partition has grown beyond a position.
    pub(crate) async fn grown_beyond(&self, position: Position) {
        self.head.beyond(position).await;
    }

    /// Ends once a caller waits for the snapshot of a commit beyond a position.
    pub(crate) async fn wanted_beyond(&self, position: Position) {
        self.wanted.beyond(position).await;
    }

    /// Ends once the partition has grown by so many entries beyond a position.
    pub(crate) async fn grown_by(&self, entries: u64, position: Position) {
        self.head.beyond(position + entries - 1).await;
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Wake, Waker};

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Woken {
        fn times(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn r84_a_runner_that_gathers_is_woken_once_enough_has_come_and_not_before() {
        let feed = Feed::default();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut grown = pin!(feed.grown_by(3, 4));
        assert!(grown.as_mut().poll(&mut context).is_pending());
        for position in [5, 6] {
            feed.note_head(position);
        }
        assert_eq!(woken.times(), 0);
        feed.note_head(7);
        assert_eq!(woken.times(), 1);
        assert!(grown.poll(&mut context).is_ready());
    }

    #[test]
    fn a_mark_that_passes_one_waiter_still_wakes_the_other_later() {
        let feed = Feed::default();
        let (near, far) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let wakers = [&near, &far].map(|woken| Waker::from(Arc::clone(woken)));
        let mut soon = pin!(feed.grown_beyond(1));
        let mut later = pin!(feed.grown_beyond(5));
        let mut poll_later = || {
            let mut context = Context::from_waker(&wakers[1]);
            later.as_mut().poll(&mut context)
        };
        let mut context = Context::from_waker(&wakers[0]);
        assert!(soon.as_mut().poll(&mut context).is_pending());
        assert!(poll_later().is_pending());
        feed.note_head(2);
        assert_eq!(near.times(), 1);
        assert!(soon.poll(&mut context).is_ready());
        // Woken for nothing, it says again what it waits for.
        assert!(poll_later().is_pending());
        let before = far.times();
        feed.note_head(5);
        assert_eq!(far.times(), before);
        feed.note_head(6);
        assert_eq!(far.times(), before + 1);
        assert!(poll_later().is_ready());
    }
}
