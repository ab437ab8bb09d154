//! Admission: the actor through which every command comes.
//!
//! Owns: nothing; permits travel in the messages.
//! Receives: [`Admit`] from handles, [`Submit`] from in-process actors.
//! Sends: [`Dispatch`] to a partition's supervisor; [`Register`] to waits; answers to callers.
//! Bounded by: `runtime.in-flight`.
//! Ends when: the system stops.
//!
//! One on each arbiter; each runs its admissions concurrently.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::task;

use actix::dev::{MessageResponse, OneshotSender, SendError};
use actix::{Actor, AsyncContext, Context, Handler, Message, WrapFuture};
use wow_kernel::command::BuiltCommand;
use wow_kernel::error::CommandError;
use wow_kernel::model::Command;
use wow_kernel::result::CommandResult;
use wow_kernel::router::{FallbackReason, Route, RouterKind, route};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::handle::Handle;
use crate::lane::{Reply, RunCommand};
use crate::outcome::{Answer, Outcome};
use crate::permits::Permit;
use crate::shared::Shared;
use crate::stages;
use crate::supervisor::Dispatch;
use crate::waits::{Register, StageSink};

/// Submits a command: the message for code that speaks actix.
#[derive(Debug, Message)]
#[rtype(result = "Result<CommandResult, CommandError>")]
pub struct Submit(pub Submission);

impl Submit {
    /// A command of a registered type.
    pub fn new<C: Command>(command: C) -> Self {
        Self(Submission::typed(command))
    }
}

impl From<Submission> for Submit {
    fn from(submission: Submission) -> Self {
        Self(submission)
    }
}

/// What a caller learns of its command before there is an answer.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// The command, once it is one.
    pub(crate) command: OnceLock<Arc<BuiltCommand>>,
    /// Whether its lane has begun.
    pub(crate) begun: Arc<AtomicBool>,
}

/// Admits a submission and sends it on its way.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Admit {
    pub(crate) submission: Box<Submission>,
    pub(crate) permit: Permit,
    pub(crate) reply: Reply,
    pub(crate) ticket: Arc<Ticket>,
    /// Where the caller hears of stages after PROCESSED, if it waits for one.
    pub(crate) stages: Option<StageSink>,
}

/// The actor.
#[derive(Debug)]
pub(crate) struct AdmissionActor {
    shared: Arc<Shared>,
}

impl AdmissionActor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Actor for AdmissionActor {
    type Context = Context<Self>;
}

impl Handler<Admit> for AdmissionActor {
    type Result = ();

    fn handle(&mut self, message: Admit, context: &mut Self::Context) {
        let shared = Arc::clone(&self.shared);
        let mut admitting = Box::pin(async move { admit(&shared, message).await });
        // Most admissions ask nobody and are done at once; only one that waits becomes a task.
        let mut unscheduled = task::Context::from_waker(task::Waker::noop());
        if admitting.as_mut().poll(&mut unscheduled).is_pending() {
            context.spawn(admitting.into_actor(self));
        }
    }
}

async fn admit(shared: &Arc<Shared>, message: Admit) {
    let Admit {
        submission,
        permit,
        reply,
        ticket,
        stages,
    } = message;
    let command = match shared.admission.admit(submission).await {
        Ok(command) => Arc::new(command),
        Err(error) => {
            let _ = reply.send(Err(error));
            return;
        }
    };
    // A stage that nothing can ever signal is refused, rather than waited for (R61).
    if let Err(error) = stages::check_available(&shared.registry, &command) {
        let _ = reply.send(Err(error));
        return;
    }
    // The only writer is this function.
    let _ = ticket.command.set(Arc::clone(&command));
    if let Some(sink) = stages {
        shared.register(Register {
            command_id: command.command_id,
            sink,
        });
    }
    let begun = Arc::clone(&ticket.begun);
    shared.dispatch(RunCommand {
        command,
        reply: Some(reply),
        begun,
        permit,
        slot: None,
    });
}

impl Shared {
    /// Sends a command to the supervisor that runs it.
    pub(crate) fn dispatch(&self, message: RunCommand) {
        let partition = self.partition_of(message.command.key());
        let owner = self.routing.owner(partition);
        match route(RouterKind::Partitioned, &owner) {
            Route::Here => {}
            Route::Fallback(reason) => self.metrics.fallback(reason),
            // There are no other members and no topic on a single node.
            Route::Forward(_) | Route::Topic => self.metrics.fallback(FallbackReason::NoOwner),
        }
        let supervisor = self
            .routing
            .addresses()
            .and_then(|addresses| addresses.supervisors.get(partition.0 as usize));
        let Some(supervisor) = supervisor else {
            refuse(message, CommandError::ShuttingDown);
            return;
        };
        match supervisor.try_send(Dispatch(message)) {
            Ok(()) => {}
            // Only a system that is going away refuses: the mailbox is larger than the permits.
            Err(SendError::Full(Dispatch(message)) | SendError::Closed(Dispatch(message))) => {
                refuse(message, CommandError::ShuttingDown);
            }
        }
    }

    /// Registers a wait, before anything can signal it.
    pub(crate) fn register(&self, message: Register) {
        let Some(addresses) = self.routing.addresses() else {
            return;
        };
        let place = Self::place_of(message.command_id, addresses.waits.len());
        // A wait that can't be registered is found by the look at storage (R63).
        if addresses.waits[place].try_send(message).is_err() {
            tracing::warn!("a wait could not be registered; storage will be asked");
        }
    }
}

fn refuse(message: RunCommand, error: CommandError) {
    let RunCommand { command, reply, .. } = message;
    if let Some(reply) = reply {
        let _ = reply.send(Ok(Outcome {
            command,
            answer: Answer::Failed(error),
        }));
    }
}

/// The answer to a [`Submit`]: ends its work when the asking actor is gone (R66).
pub(crate) struct Answering(Handle, Submission);

impl MessageResponse<AdmissionActor, Submit> for Answering {
    fn handle(
        self,
        context: &mut Context<AdmissionActor>,
        asker: Option<OneshotSender<Result<CommandResult, CommandError>>>,
    ) {
        let Self(handle, submission) = self;
        let answer = async move {
            let Some(mut asker) = asker else {
                // Nobody listens: the command runs, and nothing waits for it.
                let _ = handle.submit(submission.wait(Stage::Sent)).await;
                return;
            };
            tokio::select! {
                answered = handle.submit(submission) => {
                    let _ = asker.send(answered.and_then(CommandResult::into_result));
                }
                () = asker.closed() => {}
            }
        };
        context.spawn(actix::fut::wrap_future(answer));
    }
}

impl Handler<Submit> for AdmissionActor {
    type Result = Answering;

    fn handle(&mut self, message: Submit, _context: &mut Self::Context) -> Answering {
        Answering(Handle::of(Arc::clone(&self.shared)), message.0)
    }
}
