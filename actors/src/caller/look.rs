//! What storage says where no signal or answer has come (R22, R63).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use wow_kernel::commit::Commit;
use wow_kernel::error::CommandError;
use wow_kernel::ports::StorageError;
use wow_kernel::result::CommandResult;
use wow_kernel::wait::Stage;

use super::{Caller, LOOK, Missing};
use crate::outcome::{Answer, Committed, Outcome, base_result};
use crate::stages;

impl Caller {
    /// No outcome: storage is asked once, and the answer says what is known.
    pub(super) async fn without_outcome(
        &self,
        missing: Missing,
    ) -> Result<CommandResult, CommandError> {
        let error = match missing {
            _ if self.shared.has_ended() => CommandError::ShuttingDown,
            Missing::Late => CommandError::Timeout,
            Missing::Gone => CommandError::OutcomeUnknown,
        };
        let Some(command) = self.ticket.get() else {
            // It never became a command, as far as anybody knows.
            return Err(error);
        };
        let now = self.shared.clock.now();
        let Some(commit) = self.own_commit().await else {
            let mut result = base_result(command, Stage::Processed, now);
            result.error = Some(error);
            return Ok(result);
        };
        let answer = Answer::Committed {
            version: commit.version,
            result: commit.result,
        };
        let command = Arc::clone(command);
        let mut result = Outcome { command, answer }.to_result(now);
        if self.stage > Stage::Processed {
            result.error = Some(match missing {
                _ if self.shared.has_ended() => CommandError::ShuttingDown,
                Missing::Late | Missing::Gone => CommandError::WaitTimeout,
            });
        }
        Ok(result)
    }

    /// The commit that this very command has made, as far as storage says so in time.
    async fn own_commit(&self) -> Option<Commit> {
        let command = self.ticket.get()?;
        let key = command.key();
        let requests = &self.shared.kernel.requests;
        let find = requests.find(&key.tenant, &key.aggregate_type, &command.request_id);
        let found = self.in_time(LOOK, find).await.unwrap_or_else(|error| {
            tracing::warn!(%error, command_id = %command.command_id, "storage can't say what became of a command");
            None
        });
        found.filter(|commit| commit.command_id == command.command_id)
    }

    /// Whether storage says what signals have not.
    pub(super) async fn is_reached(
        &self,
        outcome: &Outcome,
        committed: &Committed,
        within: Duration,
    ) -> bool {
        let look = async {
            match self.stage {
                Stage::Snapshot => self.is_in_snapshot(committed).await,
                Stage::SagaHandled => self.are_sagas_past(outcome, committed).await,
                _ => Ok(false),
            }
        };
        self.in_time(within, look).await.unwrap_or_else(|error| {
            let command_id = outcome.command.command_id;
            tracing::warn!(%error, %command_id, "storage can't say whether a stage is reached");
            false
        })
    }

    async fn is_in_snapshot(&self, committed: &Committed) -> Result<bool, StorageError> {
        let keys = std::slice::from_ref(&committed.key);
        let versions = self.shared.snapshots.versions(keys).await?;
        Ok(versions
            .first()
            .is_some_and(|held| *held >= committed.version))
    }

    async fn are_sagas_past(
        &self,
        outcome: &Outcome,
        committed: &Committed,
    ) -> Result<bool, StorageError> {
        let shared = &self.shared;
        let (key, version) = (&committed.key, committed.version);
        let log = &shared.kernel.log;
        let read = log.read_aggregate(key, version - 1, version, 1).await?;
        let Some(commit) = read.first() else {
            return Ok(false);
        };
        let matching = stages::matching_sagas(&shared.registry, &outcome.command);
        for (saga, _) in matching {
            let saved = shared
                .checkpoints
                .load(saga.name, &[commit.partition])
                .await?;
            if saved
                .first()
                .is_none_or(|checkpoint| checkpoint.position < commit.position)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The answer where storage shows that the plan's stage is reached.
    pub(super) fn reached(&self, mut result: CommandResult, outcome: &Outcome) -> CommandResult {
        let registry = &self.shared.registry;
        result.stage = self.stage;
        result.error = None;
        result.signal_time = self.shared.clock.now();
        result.function = match self.stage {
            Stage::SagaHandled => stages::matching_sagas(registry, &outcome.command)
                .next()
                .map_or(result.function, |(_, function)| Arc::new(function)),
            _ => Arc::new(stages::snapshot_function(registry)),
        };
        result
    }

    /// What storage says, unless that takes too long: no caller waits for storage without end.
    async fn in_time<T>(
        &self,
        limit: Duration,
        look: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        match select(pin!(look), self.shared.clock.sleep(limit)).await {
            Either::Left((found, _)) => found,
            Either::Right(((), _)) => Err(StorageError::Unavailable("no answer in time".into())),
        }
    }
}
