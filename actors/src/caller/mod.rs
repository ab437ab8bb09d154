//! A caller's side of a command: waiting for its outcome, for later stages, or for the deadline
//! (R60 to R66). It runs wherever the caller does, and holds nothing that the command needs.

mod look;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::{mpsc, oneshot};
use wow_kernel::error::CommandError;
use wow_kernel::id::EpochMillis;
use wow_kernel::result::CommandResult;
use wow_kernel::wait::{FunctionInfo, Stage, StageFilter};

use crate::admission::Ticket;
use crate::outcome::{Committed, Outcome, base_result};
use crate::permits::Permit;
use crate::shared::{Phase, Shared};
use crate::stages;
use crate::waits::{Register, StageReached, StageSink};

/// How often an open wait is looked up in storage, and how long the last look may take (R63).
const LOOK: Duration = Duration::from_secs(1);

/// Where a caller hears of later stages.
#[derive(Debug)]
pub(crate) enum Stages {
    Snapshot(oneshot::Receiver<StageReached>),
    Every(mpsc::Receiver<StageReached>),
    /// No signal will come: what is left is the look at storage.
    Lost,
}

impl Stages {
    /// The next stage; none where no signal can come any more, for the system has ended. A signal
    /// that was lost another way is waited for: storage is looked at meanwhile.
    async fn next(&mut self, shared: &Shared) -> Option<StageReached> {
        let reached = match self {
            Self::Snapshot(stages) => stages.await.ok(),
            Self::Every(stages) => stages.recv().await,
            Self::Lost => None,
        };
        if reached.is_none() && !shared.has_ended() {
            *self = Self::Lost;
            shared.in_phase(Phase::Ended).await;
        }
        reached
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, Copy)]
enum Missing {
    /// The deadline has passed.
    Late,
    /// Whatever had the command is gone: its lane has died after it began, or the system ended.
    Gone,
}

/// One waiting caller.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ticket: Ticket,
    /// Told once a lane has taken the command, where the caller asks for SENT; closed where none
    /// has.
    pub(crate) sent: Option<oneshot::Receiver<()>>,
    pub(crate) outcome: oneshot::Receiver<Result<Outcome, CommandError>>,
    pub(crate) stages: Option<Stages>,
    /// What it waits for, …
    pub(crate) stage: Stage,
    /// … and of which subscriptions, where these count.
    pub(crate) filter: Option<Box<StageFilter>>,
    pub(crate) deadline: Duration,
    /// How much time there is, as long as none has passed.
    pub(crate) fresh: Option<Duration>,
    /// Its place among the waiting; given back when it is gone (R66).
    pub(crate) _waiter: Option<Permit>,
}

type Progress<'a> = Option<&'a mpsc::Sender<Result<CommandResult, CommandError>>>;

impl Caller {
    /// Waits for the plan's stage. Earlier ones go to `progress` as they come.
    pub(crate) async fn finish(
        &mut self,
        progress: Progress<'_>,
    ) -> Result<CommandResult, CommandError> {
        if let Some(result) = self.when_sent().await {
            if self.stage == Stage::Sent {
                return Ok(result);
            }
            tell(progress, &result).await;
        }
        let outcome = match self.outcome_in_time().await {
            Ok(outcome) => outcome?,
            Err(missing) => return Box::pin(self.without_outcome(missing)).await,
        };
        let now = self.shared.clock.now();
        let Some(stages) = self.stages.take() else {
            return Ok(outcome.to_result(now));
        };
        // Boxed, for it is large: who waits for no later stage should not pay for it.
        Box::pin(self.later_stages(outcome, stages, now, progress)).await
    }

    async fn later_stages(
        &self,
        outcome: Outcome,
        mut stages: Stages,
        now: EpochMillis,
        progress: Progress<'_>,
    ) -> Result<CommandResult, CommandError> {
        let result = outcome.to_result(now);
        let Some(committed) = outcome.committed() else {
            // Failed, or nothing was committed (R65).
            return Ok(result);
        };
        tell(progress, &result).await;
        if committed.command_id != outcome.command.command_id {
            stages = self.wait_for_first(&committed);
        }
        self.await_stages(outcome, committed, stages, result, progress)
            .await
    }

    /// SENT, where the caller asks for it and a lane has taken the command in time.
    async fn when_sent(&mut self) -> Option<CommandResult> {
        let sent = self.sent.take()?;
        self.fresh = None;
        match select(sent, self.shared.clock.sleep(self.left()?)).await {
            Either::Left((Ok(()), _)) => {
                let now = self.shared.clock.now();
                Some(base_result(self.ticket.get()?, Stage::Sent, now))
            }
            // Refused: the outcome says why. Or late, as the outcome will be.
            Either::Left((Err(_), _)) | Either::Right(_) => None,
        }
    }

    async fn outcome_in_time(&mut self) -> Result<Result<Outcome, CommandError>, Missing> {
        // Nothing was waited for yet, in most cases: then no look at the clock is needed.
        let fresh = self.fresh.take();
        let left = fresh.or_else(|| self.left()).ok_or(Missing::Late)?;
        match select(&mut self.outcome, self.shared.clock.sleep(left)).await {
            Either::Left((Ok(outcome), _)) => Ok(outcome),
            Either::Left((Err(_dropped), _)) => Err(Missing::Gone),
            Either::Right(((), _)) => Err(Missing::Late),
        }
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
        let mut look_in = match outcome.command.command_id == committed.command_id {
            true => LOOK,
            false => Duration::ZERO,
        };
        let mut failure = CommandError::WaitTimeout;
        while let Some(left) = self.left() {
            let next = pin!(stages.next(&self.shared));
            match select(next, self.shared.clock.sleep(look_in.min(left))).await {
                Either::Left((Some(reached), _)) => {
                    let wanted = self.is_wanted(&reached);
                    result = self.advance(result, &reached);
                    missing -= usize::from(wanted);
                    if wanted && (missing == 0 || reached.error.is_some()) {
                        return Ok(result);
                    }
                    tell(progress, &result).await;
                }
                Either::Left((None, _)) => {
                    failure = CommandError::ShuttingDown;
                    break;
                }
                Either::Right(((), _)) => {
                    let Some(left) = self.left() else { break };
                    if self.is_reached(&outcome, &committed, left).await {
                        return Ok(self.reached(result, &outcome));
                    }
                    look_in = LOOK;
                }
            }
        }
        // Once more: a lost signal is no timeout (R63).
        if self.is_reached(&outcome, &committed, LOOK).await {
            return Ok(self.reached(result, &outcome));
        }
        result.error = Some(failure);
        Ok(result)
    }

    fn is_wanted(&self, reached: &StageReached) -> bool {
        reached.stage == self.stage
            && (reached.stage <= Stage::Snapshot || self.filter_matches(&reached.function))
    }

    fn filter_matches(&self, function: &FunctionInfo) -> bool {
        let filter = self.filter.as_deref();
        filter.is_none_or(|filter| filter.matches(function))
    }

    fn advance(&self, mut result: CommandResult, reached: &StageReached) -> CommandResult {
        result.stage = reached.stage;
        result.function = Arc::clone(&reached.function);
        result.error.clone_from(&reached.error);
        result.signal_time = self.shared.clock.now();
        result
    }

    /// How much time is left; none once the deadline has passed.
    fn left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_sub(self.shared.clock.monotonic());
        (!left.is_zero()).then_some(left)
    }
}

async fn tell(progress: Progress<'_>, result: &CommandResult) {
    if let Some(progress) = progress {
        // One that is gone ends this wait from outside.
        let _ = progress.send(Ok(result.clone())).await;
    }
}
