//! What became of a command, on its way from the lane to whoever waits.

use std::sync::Arc;

use serde_json::value::RawValue;
use wow_kernel::command::BuiltCommand;
use wow_kernel::commit::StateView;
use wow_kernel::error::CommandError;
use wow_kernel::execute::Executed;
use wow_kernel::id::{AggregateKey, CommandId, EpochMillis, Version};
use wow_kernel::recent::RequestRecord;
use wow_kernel::result::CommandResult;
use wow_kernel::wait::Stage;

/// A command's end, as far as its own aggregate is concerned.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It committed.
    Committed {
        /// The version it reached.
        version: Version,
        /// Its result map.
        result: Option<Arc<RawValue>>,
    },
    /// Its request had committed before (R40).
    Known {
        /// What the request committed.
        record: Box<RequestRecord>,
        /// To which aggregate.
        key: AggregateKey,
        /// Whether another command did.
        duplicate: bool,
    },
    /// It decided no events (R45).
    Unchanged {
        /// The version of the aggregate.
        version: Version,
        /// Its result map.
        result: Option<Arc<RawValue>>,
    },
    /// It failed.
    Failed(CommandError),
}

impl Answer {
    /// What became of a command, and its commit where it made one.
    pub(crate) fn of(executed: Executed) -> (Self, Option<StateView>) {
        let answer = match executed {
            Executed::Committed(view) => {
                let answer = Self::Committed {
                    version: view.commit.version,
                    result: view.commit.result.clone(),
                };
                return (answer, Some(view));
            }
            Executed::Known {
                record,
                key,
                duplicate,
            } => Self::Known {
                record,
                key,
                duplicate,
            },
            Executed::Unchanged { version, result } => Self::Unchanged { version, result },
            Executed::Failed(error) => Self::Failed(error),
        };
        (answer, None)
    }
}

/// A command and its end.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) command: Arc<BuiltCommand>,
    pub(crate) answer: Answer,
}

/// A commit that later stages will be reached for.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    /// The command that committed: another one's for a duplicate.
    pub(crate) command_id: CommandId,
    pub(crate) key: AggregateKey,
    pub(crate) version: Version,
}

impl Outcome {
    /// What later stages are waited for on, if anything was committed.
    pub(crate) fn committed(&self) -> Option<Committed> {
        match &self.answer {
            Answer::Committed { version, .. } => Some(Committed {
                command_id: self.command.command_id,
                key: self.command.key().clone(),
                version: *version,
            }),
            Answer::Known { record, key, .. } => Some(Committed {
                command_id: record.command_id,
                key: key.clone(),
                version: record.version,
            }),
            Answer::Unchanged { .. } | Answer::Failed(_) => None,
        }
    }

    /// What the caller is told when the command itself is done.
    pub(crate) fn to_result(&self, now: EpochMillis) -> CommandResult {
        let mut result = base_result(&self.command, Stage::Processed, now);
        match &self.answer {
            Answer::Committed {
                version,
                result: map,
            } => {
                result.aggregate_version = Some(*version);
                result.result.clone_from(map);
                result.committed = true;
            }
            Answer::Known {
                record,
                key,
                duplicate,
            } => {
                result.aggregate_version = Some(record.version);
                result.result.clone_from(&record.result);
                result.aggregate_id = key.id.clone();
                result.command_id = record.command_id;
                result.duplicate = *duplicate;
                result.committed = true;
            }
            Answer::Unchanged {
                version,
                result: map,
            } => {
                result.aggregate_version = Some(*version);
                result.result.clone_from(map);
            }
            Answer::Failed(error) => {
                if let CommandError::VersionMismatch { current, .. } = error {
                    result.aggregate_version = Some(*current);
                }
                result.error = Some(error.clone());
            }
        }
        result
    }
}

/// What is known of any command that was built.
pub(crate) fn base_result(command: &BuiltCommand, stage: Stage, now: EpochMillis) -> CommandResult {
    CommandResult {
        wait_command_id: command.command_id,
        stage,
        context: Arc::clone(&command.aggregate.context),
        aggregate_type: command.key().aggregate_type.clone(),
        aggregate_name: command.aggregate.spec.name,
        tenant: command.key().tenant.clone(),
        owner: command.identity.owner.clone(),
        space: command.identity.space.clone(),
        aggregate_id: command.key().id.clone(),
        aggregate_version: None,
        request_id: command.request_id.clone(),
        command_id: command.command_id,
        function: Arc::clone(&command.definition.function),
        result: None,
        duplicate: false,
        committed: false,
        error: None,
        signal_time: now,
    }
}
