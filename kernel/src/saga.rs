//! What becomes of a saga's command on its way into admission (R83).

use crate::access::Principal;
use crate::commit::Commit;
use crate::error::CommandError;
use crate::id::{RequestId, SpaceId};
use crate::model::SagaCommand;
use crate::registry::{Registry, SagaDefinition};
use crate::submission::{PermitClass, Submission, SubmittedRequestId};
use crate::wait::Stage;

/// The longest chain of sagas' commands: one beyond is taken for a loop.
pub const SAGA_DEPTH_MAX: u32 = 32;

/// The header that counts how many sagas led to a command.
pub const DEPTH_HEADER: &str = "wow-saga-depth";

/// The longest context and saga name together, in bytes: with what else a saga's request id
/// holds, at its longest, they have to fit into 128 characters.
pub(crate) const NAMES_BYTES_MAX: usize = 80;

/// Where the numbers of answers to refusals begin: no entry sends that many commands.
const ANSWERS_FROM: usize = 1_000_000;

/// Which of an entry's commands a submission is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SagaIndex {
    /// The n-th command of the entry, counted over all its events.
    Command(usize),
    /// The n-th command that answers the refusal of another.
    Answer {
        /// The refused one.
        refused: usize,
        /// Its place among the answers.
        answer: usize,
    },
}

impl SagaIndex {
    /// The number in the request id. Answers never meet commands, however many there are.
    fn number(self) -> usize {
        match self {
            Self::Command(index) => index,
            Self::Answer { refused, answer } => (refused + 1) * ANSWERS_FROM + answer,
        }
    }
}

/// The request id of a saga's command: the same one whenever the entry is handled (R83).
pub fn request_id(context: &str, saga: &str, commit: &Commit, index: SagaIndex) -> RequestId {
    let (partition, position, number) = (commit.partition, commit.position, index.number());
    RequestId::trusted(format!(
        "wow:s:{context}:{saga}:{partition}:{position}:{number}"
    ))
}

/// Makes a submission of a saga's command. Tenant and space, and for a type with owners the
/// owner, are the entry's unless it sets them.
///
/// # Errors
/// [`CommandError::ChainTooDeep`] for a loop of sagas.
pub fn submission(
    registry: &Registry,
    saga: &SagaDefinition,
    commit: &Commit,
    command: SagaCommand,
    index: SagaIndex,
) -> Result<Submission, CommandError> {
    let depth = depth_of(commit) + 1;
    if depth > SAGA_DEPTH_MAX {
        return Err(CommandError::ChainTooDeep {
            max: SAGA_DEPTH_MAX as usize,
        });
    }
    let mut submission = Submission::erased(command.payload_type, command.payload)
        .principal(Principal::service(saga.name))
        .wait(Stage::Processed)
        .header(DEPTH_HEADER, depth.to_string())
        .traced_by(&commit.headers);
    let mut cause = commit.identity();
    if let Some(tenant) = command.tenant {
        submission = submission.tenant(tenant);
    }
    match command.space {
        Some(space) if space.is_empty() => cause.space = SpaceId::none(),
        Some(space) => submission = submission.space(space),
        None => {}
    }
    if let Some(owner) = command.owner {
        submission = submission.owner(owner);
    }
    if let Some(id) = command.aggregate_id {
        submission = submission.aggregate_id(id);
    }
    let id = request_id(registry.context(), saga.name, commit, index);
    submission.request_id = Some(SubmittedRequestId::System(id));
    submission.permits = PermitClass::Internal;
    submission.facts.cause = Some(Box::new(cause));
    Ok(submission)
}

fn depth_of(commit: &Commit) -> u32 {
    commit
        .headers
        .get(DEPTH_HEADER)
        .and_then(|depth| depth.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
