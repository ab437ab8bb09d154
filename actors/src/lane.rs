//! Lane: the actor that runs one aggregate's commands.
//!
//! Owns: the cached state, with the recent requests in it.
//! Receives: [`Enqueued`] commands, from a supervisor alone, through the directory's gate.
//! Sends: an answer to each command's caller; each commit to its partition's feed.
//! Bounded by: its gate (`runtime.lane-queue`).
//! Ends when: the directory drops its address, which happens only with nothing queued.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use actix::dev::{MessageResponse, OneshotSender};
use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message};
use futures_util::FutureExt;
use tokio::sync::oneshot;
use tracing::Instrument;
use tracing::instrument::Instrumented;
use wow_kernel::command::BuiltCommand;
use wow_kernel::error::CommandError;
use wow_kernel::execute::{LaneState, Loaded};
use wow_kernel::id::Version;
use wow_kernel::registry::AggregateDefinition;
use wow_kernel::wait::Stage;

use crate::directory::{LaneRecord, Slot};
use crate::outcome::{Answer, Outcome};
use crate::permits::Permit;
use crate::shared::Shared;

/// Where a command's answer goes.
pub(crate) type Reply = oneshot::Sender<Result<Outcome, CommandError>>;

/// A command on its way to its lane.
pub(crate) struct RunCommand {
    /// The command.
    pub(crate) command: Arc<BuiltCommand>,
    /// Its caller.
    pub(crate) reply: Reply,
    /// Told once a lane has taken it, where its caller asks for SENT (R60, R64).
    pub(crate) sent: Option<oneshot::Sender<()>>,
    /// Its place in the node; given back when all that follows the commit is done (R31).
    pub(crate) permit: Permit,
    /// What joins its log lines.
    pub(crate) span: tracing::Span,
}

impl RunCommand {
    /// When it arrived at this node.
    pub(crate) fn arrived(&self) -> Duration {
        self.command
            .deadline
            .saturating_sub(self.command.wait.timeout)
    }

    /// Answers it without running it.
    pub(crate) fn refuse(self, error: CommandError) {
        self.answer(Answer::Failed(error));
    }

    /// Answers it. Its place is free before its caller knows, as after a command that ran here.
    pub(crate) fn answer(self, answer: Answer) {
        let command = self.command;
        drop(self.permit);
        let _ = self.reply.send(Ok(Outcome { command, answer }));
    }
}

/// A command in a lane's queue, with its place there.
///
/// One that is dropped unread, because its lane died, goes back to its supervisor: it has not
/// begun, so running it on a new lane is safe, whether or not its caller still waits (R32).
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Enqueued(Option<(RunCommand, Slot)>);

impl Enqueued {
    pub(crate) fn new(run: RunCommand, slot: Slot) -> Self {
        Self(Some((run, slot)))
    }

    /// Takes it out of the queue; from here on it counts as begun.
    pub(crate) fn take(mut self) -> (RunCommand, Slot) {
        self.0
            .take()
            .expect("only this empties it, and takes it too")
    }
}

impl Drop for Enqueued {
    fn drop(&mut self) {
        let Some((run, slot)) = self.0.take() else {
            return;
        };
        if let Some(home) = slot.home() {
            drop(slot);
            home.dispatch(run);
        }
    }
}

/// The actor.
pub(crate) struct Lane {
    shared: Arc<Shared>,
    record: Arc<LaneRecord>,
    /// Boxed, for it goes from turn to turn.
    state: Option<Box<LaneState>>,
    size: StateSize,
}

impl Lane {
    /// Starts a lane on the arbiter this runs on.
    pub(crate) fn spawn(shared: &Arc<Shared>, record: Arc<LaneRecord>) -> Addr<Self> {
        let shared = Arc::clone(shared);
        Self::create(|context| {
            // Larger than the gate lets in, and before anything is sent: the gate is the bound,
            // the mailbox never.
            context.set_mailbox_capacity(shared.limits.lane_queue + 1);
            Self {
                shared,
                record,
                state: None,
                size: StateSize::default(),
            }
        })
    }
}

impl Actor for Lane {
    type Context = Context<Self>;
}

impl Handler<Enqueued> for Lane {
    type Result = Turn;

    fn handle(&mut self, message: Enqueued, _context: &mut Self::Context) -> Turn {
        let state = self.state.take().unwrap_or_default();
        let (message, slot) = message.take();
        let span = message.span.clone();
        // Boxed before the span is put around it: the future is large, and would be moved.
        let run: Running = Box::pin(run(Arc::clone(&self.shared), state, message, slot));
        let mut run = run.instrument(span);
        // Most commands wait for nothing and are done here, without a round through the context.
        let mut unscheduled = task::Context::from_waker(task::Waker::noop());
        match Pin::new(&mut run).poll(&mut unscheduled) {
            Poll::Ready(finished) => {
                self.finish(finished);
                Turn::Done
            }
            Poll::Pending => Turn::Waits(run),
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Finished>>>;

/// How far a command has come when it was begun.
pub(crate) enum Turn {
    Done,
    /// It waits for something, and the next one for it (R30).
    Waits(Instrumented<Running>),
}

impl MessageResponse<Lane, Enqueued> for Turn {
    fn handle(self, context: &mut Context<Lane>, _nobody: Option<OneshotSender<()>>) {
        if let Self::Waits(run) = self {
            let run = wrap_future::<_, Lane>(run);
            context.wait(run.map(|finished, lane, _context| lane.finish(finished)));
        }
    }
}

/// A command that has run, before its caller knows.
pub(crate) struct Finished {
    state: Box<LaneState>,
    definition: Arc<AggregateDefinition>,
    /// How many bytes of events it committed.
    grown: usize,
    slot: Slot,
    permit: Permit,
    answer: Option<(Reply, Outcome)>,
}

impl Lane {
    /// Keeps the state, then gives the places back, then answers: whoever has an answer finds
    /// the places free. From the slot's end on the gate may close.
    fn finish(&mut self, finished: Finished) {
        let Finished {
            state,
            definition,
            grown,
            slot,
            permit,
            answer,
        } = finished;
        let bytes = match &state.cached {
            Some(cached) => self.size.measure(&definition, cached, grown),
            None => Some(self.size.forget()),
        };
        if let Some(bytes) = bytes {
            self.record.set_bytes(bytes);
        }
        self.state = Some(state);
        drop((slot, permit));
        if let Some((reply, outcome)) = answer {
            // A caller that is gone changes nothing.
            let _ = reply.send(Ok(outcome));
        }
    }
}

/// How much memory a state takes, measured ever more rarely: what bounds memory need not be
/// exact, and measuring costs as much as writing a snapshot (R33).
#[derive(Debug, Default)]
struct StateSize {
    next_at: Version,
    /// The length of its text when it was last measured, …
    measured: usize,
    /// … and the bytes of the events since.
    grown: usize,
}

impl StateSize {
    /// What text and in-memory form take together, against the text alone.
    const BYTES_PER_JSON_BYTE: usize = 3;

    /// What events may add before it is worth a look: about what the smallest lane takes.
    const WORTH_A_LOOK: usize = 256;

    /// Measures where the state may have grown by much.
    fn measure(
        &mut self,
        definition: &AggregateDefinition,
        loaded: &Loaded,
        grown: usize,
    ) -> Option<usize> {
        self.grown += grown;
        let most = self.measured.max(Self::WORTH_A_LOOK);
        if loaded.version < self.next_at && self.grown <= most {
            return None;
        }
        self.next_at = loaded.version + 1 + loaded.version / 4;
        self.grown = 0;
        // Users' code writes the state, and its panic is no reason to lose the lane (R32).
        let written = catch_unwind(AssertUnwindSafe(|| definition.encode_state(&loaded.state)));
        self.measured = written.ok()?.ok()?.len();
        Some(self.measured * Self::BYTES_PER_JSON_BYTE + loaded.recent.bytes())
    }

    /// The state was dropped: it takes nothing, and the next one is measured.
    fn forget(&mut self) -> usize {
        *self = Self::default();
        0
    }
}

/// Runs one command to its end, with all that follows a commit (R55).
async fn run(
    shared: Arc<Shared>,
    mut state: Box<LaneState>,
    message: RunCommand,
    slot: Slot,
) -> Finished {
    // A lane with ready work must not hold up the others on its thread.
    tokio::task::coop::consume_budget().await;
    let RunCommand {
        command,
        reply,
        permit,
        ..
    } = message;
    let mut grown = 0;
    let answer = if shared.has_ended() {
        Some(Answer::Failed(CommandError::ShuttingDown))
    } else if shared.clock.monotonic() >= command.deadline {
        // Nobody waits for it any more, and it has not begun (R31).
        Some(Answer::Failed(CommandError::Timeout))
    } else {
        let executed = {
            let execute = pin!(shared.kernel.execute(&mut state, &command));
            AssertUnwindSafe(execute).catch_unwind().await
        };
        match executed {
            Ok(executed) => {
                let (answer, view) = Answer::of(executed);
                if let Some(view) = view {
                    grown = view.commit.entry_bytes();
                    let (bytes, stage) = (slot.state_bytes() + grown, command.wait.stage);
                    let (partition, position) = (view.commit.partition, view.commit.position);
                    shared.feeds.offer(view, bytes, stage == Stage::Snapshot);
                    shared.hint_owner(partition, position);
                }
                Some(answer)
            }
            Err(_panic) => {
                // The kernel catches users' code. Beyond it nobody knows how far this came: the
                // caller looks at storage, and the next command loads the state.
                tracing::error!(?command, "running a command panicked");
                *state = LaneState::default();
                None
            }
        }
    };
    shared.metrics.command_done(&command, answer.as_ref());
    Finished {
        state,
        definition: Arc::clone(&command.aggregate),
        grown,
        slot,
        permit,
        answer: answer.map(|answer| (reply, Outcome { command, answer })),
    }
}
