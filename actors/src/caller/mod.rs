//! A caller's side of a command: waiting for its outcome, for later stages, or for the deadline
//! (R60 to R66). It runs wherever the caller does, and holds nothing that the command needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::{mpsc, oneshot};
use wow_kernel::error::CommandError;
use wow_kernel::id::PartitionNo;
use wow_kernel::result::CommandResult;
use wow_kernel::submission::PermitClass;
use wow_kernel::wait::{Stage, WaitPlan};

use crate::admission::Ticket;
use crate::lane::RunCommand;
use crate::outcome::{Answer, Committed, Outcome, base_result};
use crate::permits::Permit;
use crate::shared::Shared;
use crate::stages;
use crate::waits::{Register, StageReached, StageSink};

/// How often an open wait is looked up in storage (R63).
const LOOK: Duration = Duration::from_secs(1);

/// Where a caller hears of later stages.
#[derive(Debug)]
pub(crate) enum Stages {
    Snapshot(oneshot::Receiver<StageReached>),
    Every(mpsc::Receiver<StageReached>),
    /// No signal will come: what is left is the look at storage.
    Ended,
}

impl Stages {
    /// The next stage; never ends while there may be one.
    async fn next(&mut self) -> StageReached {
        let reached = match self {
            Self::Snapshot(stages) => stages.await.ok(),
            Self::Every(stages) => stages.recv().await,
            Self::Ended => None,
        };
        if let Some(reached) = reached {
            return reached;
        }
        *self = Self::Ended;
        std::future::pending().await
    }
}

type Outcomes = oneshot::Receiver<Result<Outcome, CommandError>>;

/// One waiting caller.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) outcome: Outcomes,
    pub(crate) stages: Option<Stages>,
    pub(crate) plan: WaitPlan,
    pub(crate) deadline: Duration,
    /// Its place among the waiting; given back when it is gone (R66).
    pub(crate) _waiter: Option<Permit>,
}

type Progress<'a> = Option<&'a mpsc::Sender<Result<CommandResult, CommandError>>>;

impl Caller {
    /// Waits for the plan's stage. Earlier ones go to `progress` as they come.
    pub(crate) async fn finish(
        mut self,
        progress: Progress<'_>,
    ) -> Result<CommandResult, CommandError> {
        let outcome = match self.outcome_in_time().await {
            Some(outcome) => outcome?,
            None => return self.outcome_late().await,
        };
        let result = outcome.to_result(self.shared.clock.now());
        let (Some(committed), Some(mut stages)) = (outcome.committed(), self.stages.take()) else {
            // Failed, or nothing was committed, or nothing more is waited for (R65).
            return Ok(result);
        };
        if let Some(progress) = progress {
            let _ = progress.send(Ok(result.clone())).await;
        }
        if committed.command_id != outcome.command.command_id {
            stages = self.wait_for_first(&committed);
        }
        self.await_stages(outcome, committed, stages, result, progress)
            .await
    }

    /// The outcome; none when the deadline passes first.
    async fn outcome_in_time(&mut self) -> Option<Result<Outcome, CommandError>> {
        loop {
            let left = self.left()?;
            match select(&mut self.outcome, self.shared.clock.sleep(left)).await {
                Either::Left((Ok(outcome), _)) => return Some(outcome),
                Either::Left((Err(_dropped), _)) => match self.submit_again() {
                    Some(outcome) => self.outcome = outcome,
                    None => return None,
                },
                Either::Right(((), _)) => return None,
            }
        }
    }

    /// Its lane died. A command that had not begun is safe to submit again (R32).
    fn submit_again(&self) -> Option<Outcomes> {
        let command = self.ticket.command.get()?;
        if self.ticket.begun.load(Ordering::Acquire) {
            return None;
        }
        tracing::warn!(
            ?command,
            "its lane was lost before it began; submitted again"
        );
        let permit = self.shared.permits.try_acquire(PermitClass::Internal)?;
        let (reply, outcome) = oneshot::channel();
        self.shared.dispatch(RunCommand {
            command: Arc::clone(command),
            reply: Some(reply),
            begun: Arc::clone(&self.ticket.begun),
            permit,
            slot: None,
        });
        Some(outcome)
    }

    /// No outcome in time: storage is asked once, and the answer says what is known (R22, R63).
    async fn outcome_late(self) -> Result<CommandResult, CommandError> {
        let Some(command) = self.ticket.command.get() else {
            return Err(CommandError::Timeout);
        };
        let now = self.shared.clock.now();
        let key = command.key();
        let requests = &self.shared.kernel.requests;
        let found = requests
            .find(&key.tenant, &key.aggregate_type, &command.request_id)
            .await;
        let mut result = base_result(command, Stage::Processed, now);
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "storage can't say what became of a late command");
            None
        });
        if let Some(commit) = found.filter(|commit| commit.command_id == command.command_id) {
            let version = commit.version;
            let answer = Answer::Committed {
                version,
                result: commit.result,
            };
            let outcome = Outcome {
                command: Arc::clone(command),
                answer,
            };
            result = outcome.to_result(now);
            if self.plan.stage <= Stage::Processed {
                return Ok(result);
            }
            result.error = Some(CommandError::WaitTimeout);
        } else {
            result.error = Some(CommandError::Timeout);
        }
        Ok(result)
    }

    /// A duplicate waits for the stages of the first commit (R65).
    fn wait_for_first(&self, committed: &Committed) -> Stages {
        let (sink, stages) = mpsc::channel(4);
        let sink = StageSink::Every(sink);
        self.shared.register(Register {
            command_id: committed.command_id,
            sink,
        });
        Stages::Every(stages)
    }

    async fn await_stages(
        &self,
        outcome: Outcome,
        committed: Committed,
        mut stages: Stages,
        mut result: CommandResult,
        progress: Progress<'_>,
    ) -> Result<CommandResult, CommandError> {
        let mut missing = stages::expected(&self.shared.registry, &outcome.command);
        // Of a first commit the signals may all be past, so storage is looked at at once (R65).
        let mut look_in = if outcome.command.command_id == committed.command_id {
            LOOK
        } else {
            Duration::ZERO
        };
        loop {
            let Some(left) = self.left() else { break };
            match select(
                Box::pin(stages.next()),
                self.shared.clock.sleep(look_in.min(left)),
            )
            .await
            {
                Either::Left((reached, _)) => {
                    let wanted = self.is_wanted(&reached);
                    result = self.advance(result, &reached);
                    if wanted && reached.error.is_some() {
                        return Ok(result);
                    }
                    if wanted {
                        missing -= 1;
                    }
                    if missing == 0 {
                        return Ok(result);
                    }
                    if let Some(progress) = progress {
                        let _ = progress.send(Ok(result.clone())).await;
                    }
                }
                Either::Right(((), _)) => {
                    if self.is_reached(&outcome, &committed).await {
                        return Ok(self.reached(result, &outcome));
                    }
                    look_in = LOOK;
                }
            }
        }
        if self.is_reached(&outcome, &committed).await {
            return Ok(self.reached(result, &outcome));
        }
        result.error = Some(CommandError::WaitTimeout);
        Ok(result)
    }

    fn is_wanted(&self, reached: &StageReached) -> bool {
        reached.stage == self.plan.stage
            && (reached.stage <= Stage::Snapshot || self.plan.filter.matches(&reached.function))
    }

    fn advance(&self, mut result: CommandResult, reached: &StageReached) -> CommandResult {
        result.stage = reached.stage;
        result.function = Arc::clone(&reached.function);
        result.error.clone_from(&reached.error);
        result.signal_time = self.shared.clock.now();
        result
    }

    /// What storage says that signals have not (R63).
    async fn is_reached(&self, outcome: &Outcome, committed: &Committed) -> bool {
        let found = match self.plan.stage {
            Stage::Snapshot => self
                .shared
                .snapshots
                .versions(std::slice::from_ref(&committed.key))
                .await
                .map(|versions| {
                    versions
                        .first()
                        .is_some_and(|held| *held >= committed.version)
                }),
            Stage::SagaHandled => self.are_sagas_past(outcome, committed).await,
            _ => Ok(false),
        };
        found.unwrap_or_else(|error| {
            tracing::warn!(%error, "storage can't say whether a stage is reached");
            false
        })
    }

    async fn are_sagas_past(
        &self,
        outcome: &Outcome,
        committed: &Committed,
    ) -> Result<bool, wow_kernel::ports::StorageError> {
        let shared = &self.shared;
        let (key, version) = (&committed.key, committed.version);
        let read = shared
            .kernel
            .log
            .read_aggregate(key, version - 1, version, 1)
            .await?;
        let Some(commit) = read.first() else {
            return Ok(false);
        };
        for saga in shared.registry.sagas() {
            let function = stages::saga_function(&shared.registry, saga);
            let follows = saga.aggregate_type == outcome.command.key().aggregate_type;
            if !follows || !self.plan.filter.matches(&function) {
                continue;
            }
            let partition: &[PartitionNo] = &[commit.partition];
            let saved = shared.checkpoints.load(saga.name, partition).await?;
            if saved
                .first()
                .is_none_or(|checkpoint| checkpoint.position < commit.position)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn reached(&self, mut result: CommandResult, outcome: &Outcome) -> CommandResult {
        let registry = &self.shared.registry;
        result.stage = self.plan.stage;
        result.signal_time = self.shared.clock.now();
        result.function = match self.plan.stage {
            Stage::SagaHandled => registry
                .sagas()
                .iter()
                .filter(|saga| saga.aggregate_type == outcome.command.key().aggregate_type)
                .map(|saga| stages::saga_function(registry, saga))
                .find(|function| self.plan.filter.matches(function))
                .map_or(result.function, Arc::new),
            _ => Arc::new(stages::snapshot_function(registry)),
        };
        result
    }

    /// How much time is left; none once the deadline has passed.
    fn left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_sub(self.shared.clock.monotonic());
        (!left.is_zero()).then_some(left)
    }
}
