//! What a caller is told.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::error::CommandError;
use crate::id::{
    AggregateId, AggregateType, CommandId, OwnerId, RequestId, SpaceId, TenantId, Version,
};
use crate::wait::{FunctionInfo, Stage};

/// The answer to a command, or one signal on the way to it.
#[derive(Debug, Clone)]
pub struct CommandResult {
    /// The command whose caller waits.
    pub wait_command_id: CommandId,
    /// The stage that was reached.
    pub stage: Stage,
    /// The context of the aggregate.
    pub context: Arc<str>,
    /// The aggregate's type, as the log names it.
    pub aggregate_type: AggregateType,
    /// The same without its context.
    pub aggregate_name: &'static str,
    /// Its tenant.
    pub tenant: TenantId,
    /// The owner the command was sent for.
    pub owner: OwnerId,
    /// The space it was sent in.
    pub space: SpaceId,
    /// The aggregate's id.
    pub aggregate_id: AggregateId,
    /// The version of the commit, or the current one where nothing was committed.
    pub aggregate_version: Option<Version>,
    /// The request.
    pub request_id: RequestId,
    /// The command that committed: the first one's where this was a duplicate (R40).
    pub command_id: CommandId,
    /// What reached the stage.
    pub function: Arc<FunctionInfo>,
    /// The result map of the commit, a JSON object.
    pub result: Option<Arc<RawValue>>,
    /// Whether the first commit of the request is what is answered (R40).
    pub duplicate: bool,
    /// Whether the command is known to have committed, whatever became of the wait (R63).
    pub committed: bool,
    /// Why it failed; none on success.
    pub error: Option<CommandError>,
    /// When the stage was reached.
    pub signal_time: crate::id::EpochMillis,
}

impl CommandResult {
    /// Whether all went well.
    pub fn succeeded(&self) -> bool {
        self.error.is_none()
    }

    /// The result, or its error.
    ///
    /// # Errors
    /// The error that it carries.
    pub fn into_result(self) -> Result<Self, CommandError> {
        match self.error {
            None => Ok(self),
            Some(error) => Err(error),
        }
    }
}
