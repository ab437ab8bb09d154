//! Waits: the actor that holds callers waiting for stages after PROCESSED.
//!
//! Owns: pending waits, by the id of the command whose commit they wait for.
//! Receives: [`Register`], [`Reached`]; [`End`] from the system.
//! Sends: signals to the callers.
//! Bounded by: `wait.max-waiters`, whose permits the callers hold.
//! Ends when: the system stops.
//!
//! One on each arbiter; a command's waits are with the one that its id picks.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message};
use tokio::sync::{mpsc, oneshot};
use wow_kernel::error::CommandError;
use wow_kernel::id::CommandId;
use wow_kernel::wait::{FunctionInfo, Stage};

use crate::shared::Shared;
use crate::threads::End;
use crate::vital::Vital;

/// Looked up for every signal.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// How often waits whose caller is gone are removed, …
const SWEEP: Duration = Duration::from_secs(1);

/// … and at how many at least it is done at once, so that callers which come and go faster than
/// that don't pile up.
const SWEEP_FROM: usize = 1024;

/// A stage that a commit has reached.
#[derive(Debug, Clone)]
pub(crate) struct StageReached {
    pub(crate) command_id: CommandId,
    pub(crate) stage: Stage,
    pub(crate) function: Arc<FunctionInfo>,
    /// Why the handler failed, where it did; the commit stands.
    pub(crate) error: Option<CommandError>,
}

/// Where a waiting caller hears of stages.
#[derive(Debug)]
pub(crate) enum StageSink {
    /// It waits for the snapshot alone, as most do: the cheaper channel.
    Snapshot(oneshot::Sender<StageReached>),
    /// It hears of every stage.
    Every(mpsc::Sender<StageReached>),
}

impl StageSink {
    fn is_closed(&self) -> bool {
        match self {
            Self::Snapshot(sink) => sink.is_closed(),
            Self::Every(sink) => sink.is_closed(),
        }
    }

    /// Tells a stage, and gives the sink back while there may be more to tell. A full one loses
    /// the signal: its caller looks at storage every second (R63).
    fn tell(self, reached: &StageReached) -> Option<Self> {
        match self {
            Self::Snapshot(sink) if reached.stage == Stage::Snapshot => {
                let _ = sink.send(reached.clone());
                None
            }
            Self::Every(sink) => {
                let _ = sink.try_send(reached.clone());
                (!sink.is_closed()).then_some(Self::Every(sink))
            }
            waiting @ Self::Snapshot(_) => Some(waiting),
        }
    }
}

/// A caller waits for what follows a command's commit.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Register {
    pub(crate) command_id: CommandId,
    pub(crate) sink: StageSink,
}

/// Commits have reached stages.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Reached(pub(crate) Vec<StageReached>);

/// The actor.
#[derive(Debug)]
pub(crate) struct Waits {
    pending: HashMap<CommandId, Vec<StageSink>>,
    /// At how many pending ones those that are gone are removed: twice what the last time left.
    sweep_at: usize,
    open: prometheus::IntGauge,
    _vital: Vital,
}

impl Waits {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            pending: HashMap::default(),
            sweep_at: SWEEP_FROM,
            open: shared.metrics.waits_open.clone(),
            _vital: Vital::of(shared, "waits"),
        }
    }

    /// Removes the waits whose caller has been answered, has timed out or is gone (R66).
    fn sweep(&mut self) {
        let before = self.pending.len();
        self.pending.retain(|_, sinks| {
            sinks.retain(|sink| !sink.is_closed());
            !sinks.is_empty()
        });
        self.open.sub((before - self.pending.len()) as i64);
        self.sweep_at = (self.pending.len() * 2).max(SWEEP_FROM);
    }
}

impl Actor for Waits {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.run_interval(SWEEP, |waits, _context| waits.sweep());
    }
}

impl Handler<Register> for Waits {
    type Result = ();

    fn handle(&mut self, message: Register, _context: &mut Self::Context) {
        if self.pending.len() >= self.sweep_at {
            self.sweep();
        }
        let sinks = self.pending.entry(message.command_id).or_insert_with(|| {
            self.open.inc();
            Vec::with_capacity(1)
        });
        sinks.push(message.sink);
    }
}

impl Handler<Reached> for Waits {
    type Result = ();

    fn handle(&mut self, message: Reached, _context: &mut Self::Context) {
        for reached in message.0 {
            let Some(sinks) = self.pending.remove(&reached.command_id) else {
                continue;
            };
            let left: Vec<_> = sinks
                .into_iter()
                .filter_map(|sink| sink.tell(&reached))
                .collect();
            if left.is_empty() {
                self.open.dec();
            } else {
                self.pending.insert(reached.command_id, left);
            }
        }
    }
}

impl Handler<End> for Waits {
    type Result = ();

    // Whoever still waits learns of it by its channel's end.
    fn handle(&mut self, _message: End, context: &mut Self::Context) {
        self.open.sub(self.pending.len() as i64);
        self.pending.clear();
        context.stop();
    }
}
