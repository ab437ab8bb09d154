//! What a test has told the proxy to do, as its connections look it up, and what they counted.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::Direction;
use super::pattern::{Found, Pattern};

/// Tells a test that its trigger has fired.
pub(super) type Report = oneshot::Sender<()>;

/// What becomes of the bytes that go one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Flow {
    #[default]
    Pass,
    Delay(Duration),
    Stall,
}

/// Words to wait for, and what follows.
#[derive(Debug)]
pub(super) struct Trigger {
    pub(super) asked: Vec<u8>,
    pub(super) then: Then,
    pub(super) fired: Report,
}

/// What follows.
#[derive(Debug)]
pub(super) enum Then {
    /// The words are not handed on.
    DropRequest,
    /// They are, and what is answered is not, until these words are part of it.
    DropAnswer(Vec<u8>),
}

/// What to do with a piece of what a client sent.
#[derive(Debug)]
pub(super) enum Verdict {
    HandOn,
    /// Hand so many bytes on, then cut.
    Cut(usize, Report),
    /// Hand it on, and cut at the answer with this in it.
    CutAtAnswer(Pattern, Report),
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    flows: [watch::Sender<Flow>; 2],
    cuts: [Mutex<Option<(u64, Report)>>; 2],
    trigger: Mutex<Armed>,
    pub(super) counters: Arc<Counters>,
}

/// The trigger that is set; each has a number of its own.
#[derive(Debug, Default)]
struct Armed {
    number: u64,
    trigger: Option<Trigger>,
}

/// How far one connection has come in the trigger's words.
#[derive(Debug, Default)]
pub(super) struct Progress {
    number: u64,
    pattern: Option<Pattern>,
}

impl Rules {
    pub(super) fn set_flow(&self, direction: Direction, flow: Flow) {
        self.flows[direction as usize].send_replace(flow);
    }

    /// The flow of one direction, as it changes.
    pub(super) fn flow(&self, direction: Direction) -> watch::Receiver<Flow> {
        self.flows[direction as usize].subscribe()
    }

    pub(super) fn set_cut_after(&self, direction: Direction, bytes: u64, report: Report) {
        *self.cuts[direction as usize].lock() = Some((bytes, report));
    }

    pub(super) fn set_trigger(&self, trigger: Trigger) {
        let mut armed = self.trigger.lock();
        armed.number += 1;
        armed.trigger = Some(trigger);
    }

    /// Counts bytes about to be handed on against the cut that is set, and tells how many of them
    /// may go where it is reached.
    pub(super) fn cut_within(&self, direction: Direction, bytes: usize) -> Option<(usize, Report)> {
        let mut cut = self.cuts[direction as usize].lock();
        let (left, _) = cut.as_mut()?;
        let bytes = u64::try_from(bytes).unwrap();
        if *left > bytes {
            *left -= bytes;
            return None;
        }
        let (left, report) = cut.take()?;
        Some((usize::try_from(left).unwrap(), report))
    }

    /// Looks for the trigger's words in what a client sent. Whoever completes them first has it.
    pub(super) fn judge(&self, progress: &mut Progress, piece: &[u8]) -> Verdict {
        let mut armed = self.trigger.lock();
        let Some(trigger) = &armed.trigger else {
            return Verdict::HandOn;
        };
        // What was sent before it was set doesn't count.
        if progress.number != armed.number {
            progress.number = armed.number;
            progress.pattern = None;
        }
        let pattern = progress
            .pattern
            .get_or_insert_with(|| Pattern::new(&trigger.asked));
        let Some(Found { begin }) = pattern.find(piece) else {
            return Verdict::HandOn;
        };
        match armed.trigger.take() {
            Some(Trigger { then, fired, .. }) => match then {
                Then::DropRequest => Verdict::Cut(begin, fired),
                Then::DropAnswer(words) => Verdict::CutAtAnswer(Pattern::new(&words), fired),
            },
            None => Verdict::HandOn,
        }
    }
}

/// What has passed.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) open: AtomicU64,
    /// By direction.
    pub(super) passed: [AtomicU64; 2],
}

impl Counters {
    pub(super) fn take_connection(self: &Arc<Self>) -> Taken {
        self.connections.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        Taken(self.clone())
    }

    pub(super) fn count(&self, direction: Direction, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap();
        self.passed[direction as usize].fetch_add(bytes, Relaxed);
    }
}

/// Counts a connection as open while it lives.
#[derive(Debug)]
pub(super) struct Taken(Arc<Counters>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}
