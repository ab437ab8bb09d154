//! The one way into the running system, for entry points and for in-process code.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::Recipient;
use actix::dev::SendError;
use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use wow_kernel::error::{Bound, CommandError};
use wow_kernel::model::Command;
use wow_kernel::ports::CommandSender;
use wow_kernel::registry::Registry;
use wow_kernel::result::CommandResult;
use wow_kernel::submission::{PermitClass, Submission};
use wow_kernel::wait::Stage;

use crate::admission::{Admit, Ticket};
use crate::caller::{Caller, Stages};
use crate::shared::Shared;
use crate::submit::Submit;
use crate::waits::StageSink;

/// How many signals a streaming caller may fall behind.
const STREAM_SIGNALS: usize = 16;

/// Sends commands to the node's admission. Cheap to clone; every clone reaches the same node.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Submits a request and waits for its plan's stage.
    ///
    /// A caller that drops the future ends its wait and nothing else: what was admitted runs to
    /// its end (R55).
    ///
    /// # Errors
    /// Why the request never became a command. What became one answers `Ok`, with the reason in
    /// [`CommandResult::error`] where it failed.
    pub fn submit(
        &self,
        submission: Submission,
    ) -> impl Future<Output = Result<CommandResult, CommandError>> + '_ {
        // Boxed at once: it is large, and everything that holds the future would move it.
        self.submit_boxed(Box::new(submission))
    }

    async fn submit_boxed(
        &self,
        submission: Box<Submission>,
    ) -> Result<CommandResult, CommandError> {
        let (stage, started) = (submission.wait.stage, self.shared.clock.monotonic());
        let answered = match self.begin(submission, started, false) {
            Ok(mut caller) => caller.finish(None).await,
            Err(refused) => Err(refused),
        };
        self.measure(stage, started);
        answered
    }

    /// Submits a request and answers with every stage as it comes (R64); the last item ends it.
    ///
    /// Dropping the receiver ends the wait and nothing else.
    #[must_use]
    pub fn stream(
        &self,
        submission: Submission,
    ) -> mpsc::Receiver<Result<CommandResult, CommandError>> {
        let (results, receiver) = mpsc::channel(STREAM_SIGNALS);
        let (stage, started) = (submission.wait.stage, self.shared.clock.monotonic());
        let begun = self.begin(Box::new(submission), started, true);
        let handle = self.clone();
        // Owned by the receiver: it ends when that is dropped, and at the plan's deadline at last.
        tokio::spawn(async move {
            let last = match begun {
                Err(error) => Err(error),
                Ok(mut caller) => tokio::select! {
                    last = caller.finish(Some(&results)) => last,
                    () = results.closed() => return,
                },
            };
            handle.measure(stage, started);
            let _ = results.send(last).await;
        });
        receiver
    }

    fn measure(&self, stage: Stage, started: Duration) {
        let took = self.shared.clock.monotonic().saturating_sub(started);
        self.shared.metrics.caller_answered(stage, took);
    }

    /// Sends a command to an aggregate: `handle.send(Deposit { amount: 5 }).to("a-1").await?`.
    pub fn send<C: Command>(&self, command: C) -> Send {
        Send {
            handle: self.clone(),
            submission: Submission::typed(command),
        }
    }

    /// The recipient to which in-process actors send [`Submit`].
    ///
    /// Asking waits where the node is busy admitting; a command beyond the node's bounds is
    /// refused as ever.
    ///
    /// # Errors
    /// [`CommandError::ShuttingDown`] before the system stands, or once it is gone.
    pub fn admission(&self) -> Result<Recipient<Submit>, CommandError> {
        let addresses = self
            .shared
            .routing
            .addresses()
            .ok_or(CommandError::ShuttingDown)?;
        Ok(addresses.admissions[0].clone().recipient())
    }

    /// The types the node knows.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.shared.registry
    }

    /// Whether the node takes commands: `false` once it is shutting down (R34).
    #[must_use]
    pub fn is_accepting(&self) -> bool {
        self.shared.is_accepting()
    }

    /// Whether this node runs what it should own, and is not about to stop.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire) && self.shared.whole.load(Ordering::Acquire)
    }

    /// Takes the permits, and hands the submission to admission.
    fn begin(
        &self,
        submission: Box<Submission>,
        started: Duration,
        streams: bool,
    ) -> Result<Caller, CommandError> {
        let shared = &self.shared;
        let busy = |bound| {
            shared.metrics.refused(bound);
            CommandError::Busy { bound }
        };
        // What is under way may still send; only callers are turned away (R34).
        let is_turned_away = || !shared.is_accepting() && submission.permits == PermitClass::Caller;
        if is_turned_away() {
            return Err(CommandError::ShuttingDown);
        }
        let stage = submission.wait.stage;
        let waits = stage > Stage::Processed;
        let waiter = match waits {
            false => None,
            true => Some(
                shared
                    .waiters
                    .try_acquire(PermitClass::Internal)
                    .ok_or_else(|| busy(Bound::Waiters))?,
            ),
        };
        let permit = shared
            .permits
            .try_acquire(submission.permits)
            .ok_or_else(|| busy(Bound::InFlight))?;
        // Again, with the permit in hand: a stop that doesn't count it is seen here.
        if is_turned_away() {
            return Err(CommandError::ShuttingDown);
        }
        let (sink, stages) = stage_channel(waits, streams || stage != Stage::Snapshot);
        let (telling, sent) = match stage == Stage::Sent || streams {
            false => (None, None),
            true => {
                let (telling, sent) = oneshot::channel();
                (Some(telling), Some(sent))
            }
        };
        let (reply, outcome) = oneshot::channel();
        let ticket = Ticket::default();
        let wait = &submission.wait;
        let (timeout, deadline) = (wait.timeout, started.saturating_add(wait.timeout));
        let filter = (stage > Stage::Snapshot).then(|| Box::new(wait.filter.clone()));
        let place = shared.admission_place(&submission);
        let admit = Admit {
            submission,
            arrived: started,
            permit,
            reply,
            ticket: Arc::clone(&ticket),
            sent: telling,
            stages: sink,
        };
        self.send_to_admission(place, admit)?;
        Ok(Caller {
            shared: Arc::clone(shared),
            ticket,
            sent,
            outcome,
            stages,
            stage,
            filter,
            deadline,
            fresh: (!timeout.is_zero()).then_some(timeout),
            _waiter: waiter,
        })
    }

    fn send_to_admission(&self, place: usize, admit: Admit) -> Result<(), CommandError> {
        let addresses = self
            .shared
            .routing
            .addresses()
            .ok_or(CommandError::ShuttingDown)?;
        match addresses.admissions[place % addresses.admissions.len()].try_send(admit) {
            Ok(()) => Ok(()),
            // The mailbox is larger than the permits: only a system that is gone refuses.
            Err(SendError::Full(_) | SendError::Closed(_)) => Err(CommandError::ShuttingDown),
        }
    }
}

/// Where a caller hears of later stages, if it waits for one; of `every` one, or the snapshot.
fn stage_channel(waits: bool, every: bool) -> (Option<StageSink>, Option<Stages>) {
    match (waits, every) {
        (false, _) => (None, None),
        (true, false) => {
            let (sink, stages) = oneshot::channel();
            (
                Some(StageSink::Snapshot(sink)),
                Some(Stages::Snapshot(stages)),
            )
        }
        (true, true) => {
            let (sink, stages) = mpsc::channel(STREAM_SIGNALS);
            (Some(StageSink::Every(sink)), Some(Stages::Every(stages)))
        }
    }
}

#[async_trait]
impl CommandSender for Handle {
    async fn send(&self, submission: Submission) -> Result<CommandResult, CommandError> {
        self.submit(submission).await?.into_result()
    }
}

/// A command about to be sent; awaiting it sends it and waits for its plan's stage.
#[derive(Debug)]
#[must_use = "a command is sent when this is awaited"]
pub struct Send {
    handle: Handle,
    submission: Submission,
}

impl Send {
    /// Names the aggregate.
    pub fn to(mut self, aggregate_id: impl Into<String>) -> Self {
        self.submission = self.submission.aggregate_id(aggregate_id);
        self
    }

    /// Names the tenant.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.submission = self.submission.tenant(tenant);
        self
    }

    /// Names the owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.submission = self.submission.owner(owner);
        self
    }

    /// Names the space.
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.submission = self.submission.space(space);
        self
    }

    /// Names the request, so that sending it again is told from a new one (R8).
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.submission = self.submission.request_id(id);
        self
    }

    /// Expects a version (R53).
    pub fn expected_version(mut self, version: wow_kernel::id::Version) -> Self {
        self.submission = self.submission.expected_version(version);
        self
    }

    /// Waits for a stage; SNAPSHOT unless said otherwise.
    pub fn wait(mut self, stage: Stage) -> Self {
        self.submission = self.submission.wait(stage);
        self
    }

    /// Waits at most this long; 30 s unless said otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.submission = self.submission.timeout(timeout);
        self
    }

    /// Sends as this caller.
    pub fn principal(mut self, principal: wow_kernel::access::Principal) -> Self {
        self.submission = self.submission.principal(principal);
        self
    }
}

impl IntoFuture for Send {
    type Output = Result<CommandResult, CommandError>;
    type IntoFuture = futures_util::future::BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.handle.submit(self.submission).await?.into_result() })
    }
}
