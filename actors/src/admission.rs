//! Admission: the actor through which every command comes.
//!
//! Owns: nothing; permits travel in the messages.
//! Receives: [`Admit`] from handles, [`Submit`] from in-process actors, [`End`] from the system.
//! Sends: [`Dispatch`] to a partition's supervisor; [`Register`] to waits; answers to callers.
//! Bounded by: `runtime.in-flight`.
//! Ends when: the system stops.
//!
//! One on each arbiter; each runs its admissions concurrently.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::dev::{MessageResponse, OneshotSender, SendError};
use actix::{Actor, ActorContext, Context, Handler, Message};
use tokio::sync::oneshot;
use tracing::Instrument;
use wow_kernel::command::BuiltCommand;
use wow_kernel::error::CommandError;
use wow_kernel::result::CommandResult;
use wow_kernel::submission::Submission;
use wow_kernel::wait::{Stage, WaitPlan};

use crate::handle::Handle;
use crate::lane::{Reply, RunCommand};
use crate::permits::Permit;
use crate::shared::Shared;
use crate::stages;
use crate::submit::Submit;
use crate::supervisor::Dispatch;
use crate::tasks::Tasks;
use crate::threads::End;
use crate::trace;
use crate::vital::Vital;
use crate::waits::{Register, StageSink};

/// The command, once admission has made one of the submission; its caller looks here.
pub(crate) type Ticket = Arc<OnceLock<Arc<BuiltCommand>>>;

/// Admits a submission and sends it on its way.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Admit {
    pub(crate) submission: Box<Submission>,
    /// When it arrived: from then on its deadline counts, here as for its caller.
    pub(crate) arrived: Duration,
    pub(crate) permit: Permit,
    pub(crate) reply: Reply,
    pub(crate) ticket: Ticket,
    /// Told once a lane has taken the command, where the caller asks for SENT.
    pub(crate) sent: Option<oneshot::Sender<()>>,
    /// Where the caller hears of stages after PROCESSED, if it waits for one.
    pub(crate) stages: Option<StageSink>,
}

/// The actor.
#[derive(Debug)]
pub(crate) struct AdmissionActor {
    shared: Arc<Shared>,
    /// Admissions and asking actors that wait for something.
    waiting: Tasks,
    _vital: Vital,
}

impl AdmissionActor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            _vital: Vital::of(&shared, "admission"),
            shared,
            waiting: Tasks::default(),
        }
    }
}

impl Actor for AdmissionActor {
    type Context = Context<Self>;
}

impl Handler<Admit> for AdmissionActor {
    type Result = ();

    fn handle(&mut self, message: Admit, _context: &mut Self::Context) {
        self.waiting.run(admit(Arc::clone(&self.shared), message));
    }
}

async fn admit(shared: Arc<Shared>, message: Admit) {
    let Admit {
        submission,
        arrived,
        permit,
        reply,
        ticket,
        sent,
        stages,
    } = message;
    let span = trace::command_span(&submission.headers);
    let admitting = pin!(shared.admission.admit_arrived(submission, arrived));
    let admitted = admitting
        .instrument(span.clone())
        .await
        // A stage that nothing can ever signal is refused, rather than waited for (R61).
        .and_then(|command| stages::check_available(&shared.registry, &command).map(|()| command));
    let command = match admitted {
        Ok(command) => command,
        Err(error) => {
            // Its place is free before its caller knows.
            drop(permit);
            let _ = reply.send(Err(error));
            return;
        }
    };
    trace::name_command(&span, &command);
    // The only writer is this function.
    let _ = ticket.set(Arc::clone(&command));
    if let Some(sink) = stages {
        shared.register(Register {
            command_id: command.command_id,
            sink,
        });
    }
    let run = RunCommand {
        command,
        reply,
        sent,
        permit,
        span,
    };
    shared.send_on(run).await;
}

impl Shared {
    /// Sends a command to the supervisor that runs it here.
    pub(crate) fn dispatch(&self, run: RunCommand) {
        let partition = self.partition_of_command(&run.command);
        let supervisor = self
            .routing
            .addresses()
            .and_then(|addresses| addresses.supervisors.get(partition.0 as usize));
        let Some(supervisor) = supervisor else {
            run.refuse(CommandError::ShuttingDown);
            return;
        };
        // Only a system that is going away refuses: the mailbox is larger than the permits.
        if let Err(SendError::Full(Dispatch(run)) | SendError::Closed(Dispatch(run))) =
            supervisor.try_send(Dispatch(run))
        {
            run.refuse(CommandError::ShuttingDown);
        }
    }

    /// Registers a wait, before anything can signal it.
    pub(crate) fn register(&self, message: Register) {
        let Some(addresses) = self.routing.addresses() else {
            return;
        };
        let place = Self::place_of(message.command_id, addresses.waits.len());
        // A wait that can't be registered is found by the look at storage (R63).
        if addresses.waits[place].try_send(message).is_err() && !self.has_ended() {
            tracing::warn!("a wait could not be registered; storage will be asked");
        }
    }
}

/// The answer to a [`Submit`].
pub(crate) struct Answering {
    handle: Handle,
    submission: Submission,
    tasks: Tasks,
}

impl MessageResponse<AdmissionActor, Submit> for Answering {
    fn handle(
        self,
        _context: &mut Context<AdmissionActor>,
        asker: Option<OneshotSender<Result<CommandResult, CommandError>>>,
    ) {
        let Self {
            handle,
            submission,
            tasks,
        } = self;
        tasks.run(async move {
            let Some(mut asker) = asker else {
                // Nobody listens: the command runs, and nothing waits for it.
                let submission = Submission {
                    wait: WaitPlan::until(Stage::Sent),
                    ..submission
                };
                if let Err(error) = handle.submit(submission).await {
                    tracing::debug!(%error, "a command that nobody asks about was refused");
                }
                return;
            };
            // The wait ends with the asking actor (R66), the command does not.
            tokio::select! {
                biased;
                answered = handle.submit(submission) => {
                    let _ = asker.send(answered.and_then(CommandResult::into_result));
                }
                () = asker.closed() => {}
            }
        });
    }
}

impl Handler<Submit> for AdmissionActor {
    type Result = Answering;

    fn handle(&mut self, message: Submit, _context: &mut Self::Context) -> Answering {
        Answering {
            handle: Handle::of(Arc::clone(&self.shared)),
            submission: message.0,
            tasks: self.waiting.clone(),
        }
    }
}

impl Handler<End> for AdmissionActor {
    type Result = ();

    fn handle(&mut self, _message: End, context: &mut Self::Context) {
        context.stop();
    }
}
