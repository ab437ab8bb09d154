//! Lane: the actor that runs one aggregate's commands.
//!
//! Owns: the cached state, with the recent requests in it.
//! Receives: [`RunCommand`], from a supervisor alone, through the directory's gate.
//! Sends: an answer to each command's caller; each commit to its partition's feed.
//! Bounded by: its gate (`runtime.lane-queue`).
//! Ends when: the directory drops its address, which happens only with nothing queued.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::{Actor, ActorFutureExt, Addr, AtomicResponse, Context, Handler, Message, WrapFuture};
use tokio::sync::oneshot;
use wow_kernel::command::BuiltCommand;
use wow_kernel::error::CommandError;
use wow_kernel::execute::{Executed, LaneState, Loaded};
use wow_kernel::id::Version;
use wow_kernel::registry::AggregateDefinition;
use wow_kernel::wait::Stage;

use crate::directory::{LaneRecord, Slot};
use crate::outcome::{Answer, Outcome};
use crate::permits::Permit;
use crate::shared::Shared;

/// Where a command's answer goes.
pub(crate) type Reply = oneshot::Sender<Result<Outcome, CommandError>>;

/// Runs a command.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct RunCommand {
    /// The command.
    pub(crate) command: Arc<BuiltCommand>,
    /// Its caller; none once it has been answered.
    pub(crate) reply: Option<Reply>,
    /// Set once the lane has begun, so that a dead lane's queue is known to be untouched (R32).
    pub(crate) begun: Arc<AtomicBool>,
    /// Its place in the node; given back when all that follows the commit is done (R31).
    pub(crate) permit: Permit,
    /// Its place in the lane.
    pub(crate) slot: Option<Slot>,
}

/// The actor.
pub(crate) struct Lane {
    shared: Arc<Shared>,
    record: Arc<LaneRecord>,
    state: Option<LaneState>,
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

impl Handler<RunCommand> for Lane {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, message: RunCommand, _context: &mut Self::Context) -> Self::Result {
        let shared = Arc::clone(&self.shared);
        let state = self.state.take().unwrap_or_default();
        let definition = Arc::clone(&message.command.aggregate);
        // Boxed here, once: the future is large, and each adapter around it would move it.
        let run: Running = Box::pin(async move {
            // A lane with ready work must not hold up the others on its thread.
            tokio::task::coop::consume_budget().await;
            run(&shared, state, message).await
        });
        AtomicResponse::new(Box::pin(run.into_actor(self).map(
            move |(state, slot), lane, _context| {
                lane.keep(&definition, state);
                // Last of all: from here on the gate may close.
                drop(slot);
            },
        )))
    }
}

type Running = Pin<Box<dyn Future<Output = (LaneState, Option<Slot>)>>>;

impl Lane {
    fn keep(&mut self, definition: &AggregateDefinition, state: LaneState) {
        if let Some(cached) = &state.cached {
            if let Some(bytes) = self.size.measure(definition, cached) {
                self.record.set_bytes(bytes);
            }
        }
        self.state = Some(state);
    }
}

/// How much memory a state takes, measured ever more rarely: what bounds memory need not be
/// exact, and measuring costs as much as writing a snapshot (R33).
#[derive(Debug, Default)]
struct StateSize {
    next_at: Version,
}

impl StateSize {
    /// What text and in-memory form take together, against the text alone.
    const BYTES_PER_JSON_BYTE: usize = 3;

    fn measure(&mut self, definition: &AggregateDefinition, loaded: &Loaded) -> Option<usize> {
        if loaded.version < self.next_at {
            return None;
        }
        self.next_at = loaded.version + 1 + loaded.version / 4;
        let json = definition.encode_state(&loaded.state).ok()?;
        Some(json.len() * Self::BYTES_PER_JSON_BYTE + loaded.recent.bytes())
    }
}

/// Runs one command to its end, with all that follows a commit (R55).
async fn run(
    shared: &Shared,
    mut state: LaneState,
    message: RunCommand,
) -> (LaneState, Option<Slot>) {
    let RunCommand {
        command,
        reply,
        begun,
        permit,
        slot,
    } = message;
    let answer = if shared.clock.monotonic() >= command.deadline {
        // Nobody waits for it any more, and it has not begun (R31).
        Answer::Failed(CommandError::Timeout)
    } else {
        begun.store(true, Ordering::Release);
        match shared.kernel.execute(&mut state, &command).await {
            Executed::Committed(view) => {
                let answer = Answer::Committed {
                    version: view.commit.version,
                    result: view.commit.result.clone(),
                };
                shared
                    .feeds
                    .offer(view, command.wait.stage == Stage::Snapshot);
                answer
            }
            Executed::Known {
                record,
                key,
                duplicate,
            } => Answer::Known {
                record: Box::new(record),
                key,
                duplicate,
            },
            Executed::Unchanged { version, result } => Answer::Unchanged { version, result },
            Executed::Failed(error) => Answer::Failed(error),
        }
    };
    shared.metrics.command_done(&command, &answer);
    if let Some(reply) = reply {
        // A caller that is gone changes nothing.
        let _ = reply.send(Ok(Outcome { command, answer }));
    }
    drop(permit);
    (state, slot)
}
