//! The last step: a built command, complete and never changed again (R7).
//!
//! Ids are made here (R8, R12), after access was judged, and whatever else came with the
//! request is checked: the wait, the headers to keep, and the chain of commands that led here.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::Admission;
use crate::access::{AccessMode, Principal};
use crate::command::{BuiltCommand, CHAIN_DEPTH_MAX, CallChain, Payload};
use crate::commit::{Commit, Headers, TRACE_HEADERS};
use crate::error::CommandError;
use crate::id::{AggregateId, AggregateKey, CommandId, Identity, RequestId};
use crate::partition::KeyHash;
use crate::registry::{CommandDefinition, Resolved};
use crate::submission::{Submission, SubmittedRequestId};
use crate::wait::WaitPlan;

/// How many headers a command keeps, the trace context's not counted (spec/03).
pub const HEADERS_MAX: usize = 32;

/// The longest name and the longest value of a kept header, in bytes (spec/03).
pub const HEADER_BYTES_MAX: usize = 1024;

/// Names of kept headers that begin with this are the system's own.
const RESERVED_HEADER_PREFIX: &str = "wow-";

/// The shortest wait that can be asked for.
const WAIT_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// The ids that are made for a command, or come with it.
pub(super) struct Ids {
    command_id: CommandId,
    request_id: RequestId,
    request_id_made: bool,
    pub(super) aggregate_id_made: bool,
}

/// Builds the command, once its identity is complete.
///
/// # Errors
/// [`CommandError::Reentrant`] where it would wait for itself.
pub(super) fn build(
    admission: &Admission,
    submission: Box<Submission>,
    (aggregate, definition): &Resolved,
    identity: Identity,
    payload: Payload,
    ids: Ids,
    arrived: Duration,
) -> Result<Arc<BuiltCommand>, CommandError> {
    check_cycle(&submission.chain, &identity.key)?;
    // Field by field, for the whole of it is large.
    let Submission {
        expected_version,
        wait,
        chain,
        headers,
        principal,
        ..
    } = *submission;
    Ok(Arc::new(BuiltCommand {
        command_id: ids.command_id,
        key_hash: KeyHash::of(&identity.key),
        identity,
        aggregate: Arc::clone(aggregate),
        definition: Arc::clone(definition),
        payload,
        request_id: ids.request_id,
        request_id_made: ids.request_id_made,
        aggregate_id_made: ids.aggregate_id_made,
        expected_version,
        deadline: arrived.saturating_add(wait.timeout),
        wait,
        chain,
        origin: admission.node.clone(),
        headers,
        principal,
    }))
}

impl Admission {
    /// Checks whatever of the request lies outside its body, and makes its ids.
    ///
    /// # Errors
    /// What can't be used.
    pub(super) fn ids(&self, submission: &Submission) -> Result<Ids, CommandError> {
        check_wait(&submission.wait, self.limits.wait_timeout_max)?;
        let is_system = matches!(submission.request_id, Some(SubmittedRequestId::System(_)))
            || !submission.chain.is_empty();
        check_headers(&submission.headers, is_system)?;
        if submission.chain.len() > CHAIN_DEPTH_MAX {
            return Err(CommandError::ChainTooDeep {
                max: CHAIN_DEPTH_MAX,
            });
        }
        let command_id = CommandId(self.random.uuid());
        let (request_id, request_id_made) = request_id(submission.request_id.as_ref(), command_id)?;
        Ok(Ids {
            command_id,
            request_id,
            request_id_made,
            aggregate_id_made: false,
        })
    }

    /// The aggregate that the same caller's same request has created (R12).
    ///
    /// Another caller's, or another command type's, is passed over: the command gets a new id,
    /// and the look-up before deciding refuses the request id (R13).
    ///
    /// # Errors
    /// [`CommandError::StorageUnavailable`] where storage is asked in vain.
    pub(super) async fn created_before(
        &self,
        identity: &Identity,
        definition: &CommandDefinition,
        ids: &Ids,
        principal: &Principal,
    ) -> Result<Option<AggregateId>, CommandError> {
        if ids.request_id_made || is_nobody(self.mode, identity, principal) {
            return Ok(None);
        }
        let request_id = &ids.request_id;
        let AggregateKey {
            tenant,
            aggregate_type,
            ..
        } = &identity.key;
        let found = self.requests.find(tenant, aggregate_type, request_id).await;
        let commit = found.map_err(|error| {
            tracing::warn!(%error, %request_id, "a creation's request can't be looked up");
            CommandError::StorageUnavailable
        })?;
        let is_same = |commit: &Commit| {
            *commit.principal == *principal.subject_text()
                && commit.owner == identity.owner
                && commit.command_type == definition.name
        };
        Ok(commit.filter(is_same).map(|commit| commit.key.id))
    }

    pub(super) fn new_id(&self) -> String {
        self.random.uuid().to_string()
    }
}

/// A caller of whom nothing is known: any two of them look alike, so none is taken for the one
/// that a stored result belongs to (R13).
fn is_nobody(mode: AccessMode, identity: &Identity, principal: &Principal) -> bool {
    mode == AccessMode::Jwt && principal.subject.is_none() && identity.owner.is_empty()
}

fn check_wait(wait: &WaitPlan, timeout_max: Duration) -> Result<(), CommandError> {
    if (WAIT_TIMEOUT_MIN..=timeout_max).contains(&wait.timeout) {
        return Ok(());
    }
    Err(CommandError::ParameterInvalid {
        name: "wait timeout".to_owned(),
        reason: format!("it is not within 1 to {} ms", timeout_max.as_millis()),
    })
}

/// Checks the headers to keep. Those with our prefix count what sagas have done: a caller that
/// could set them could stop another's saga.
fn check_headers(headers: &Headers, is_system: bool) -> Result<(), CommandError> {
    if headers.is_empty() {
        return Ok(());
    }
    let refused = |name: &str, reason: String| CommandError::ParameterInvalid {
        name: format!("header '{}'", name.chars().take(64).collect::<String>()),
        reason,
    };
    let is_ours = |name: &str| {
        let prefix = name.as_bytes().get(..RESERVED_HEADER_PREFIX.len());
        prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(RESERVED_HEADER_PREFIX.as_bytes()))
    };
    if let Some(name) = headers.keys().find(|name| !is_system && is_ours(name)) {
        let reason = format!("names beginning with '{RESERVED_HEADER_PREFIX}' are reserved");
        return Err(refused(name, reason));
    }
    let is_trace = |name: &str| TRACE_HEADERS.contains(&name);
    if headers.keys().filter(|name| !is_trace(name)).count() > HEADERS_MAX {
        return Err(CommandError::ParameterInvalid {
            name: "headers".to_owned(),
            reason: format!("there are more than {HEADERS_MAX}"),
        });
    }
    let too_long = headers
        .iter()
        .find(|(name, value)| name.len().max(value.len()) > HEADER_BYTES_MAX);
    match too_long {
        None => Ok(()),
        Some((name, _)) => Err(refused(
            name,
            format!("it is longer than {HEADER_BYTES_MAX} bytes"),
        )),
    }
}

/// A command for an aggregate whose own command waits for it would wait for ever (R30).
fn check_cycle(chain: &CallChain, target: &AggregateKey) -> Result<(), CommandError> {
    let Some(start) = chain.iter().position(|key| key == target) else {
        return Ok(());
    };
    let cycle: Vec<_> = chain[start..]
        .iter()
        .chain([target])
        .map(|key| key.to_string())
        .collect();
    Err(CommandError::Reentrant {
        chain: cycle.join(" → "),
    })
}

/// The request id, and whether it was made here: such an id can't have committed (R8). One
/// that is made here is the command's own id, a UUIDv7 as well.
fn request_id(
    submitted: Option<&SubmittedRequestId>,
    command_id: CommandId,
) -> Result<(RequestId, bool), CommandError> {
    match submitted {
        Some(SubmittedRequestId::System(id)) => Ok((id.clone(), false)),
        Some(SubmittedRequestId::Caller(text)) => RequestId::from_caller(text)
            .map(|id| (id, false))
            .map_err(|fault| CommandError::RequestIdInvalid { fault }),
        None => {
            let mut text = Uuid::encode_buffer();
            let text: &str = command_id.0.hyphenated().encode_lower(&mut text);
            Ok((RequestId::trusted(text), true))
        }
    }
}
