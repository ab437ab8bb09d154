//! Why a command fails: one typed error, each case with its stable code.
//!
//! The status a code has over HTTP is decided at that edge; here is only what happened and
//! whether trying again, with the same request id, can help.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::access::AccessError;
use crate::id::{IdFault, Version};
use crate::model::{BindingError, Rejection, RejectionKind};

/// Which bound refused a command (R31).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bound {
    /// The queue of the aggregate's lane.
    LaneQueue,
    /// The node's commands in flight.
    InFlight,
    /// The callers waiting for later stages.
    Waiters,
    /// The queue of the log writer.
    LogWriter,
}

impl Bound {
    /// The config key that sets it.
    pub fn config_key(self) -> &'static str {
        match self {
            Self::LaneQueue => "runtime.lane-queue",
            Self::InFlight => "runtime.in-flight",
            Self::Waiters => "wait.max-waiters",
            Self::LogWriter => "storage.writers",
        }
    }
}

/// Why a command was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum CommandError {
    /// No such aggregate or command type (R2).
    #[error("{what} is unknown here; GET /wow/metadata lists the types")]
    TypeUnknown {
        /// What was named.
        what: String,
    },
    /// Sources of an identity fact disagree (R3).
    #[error("the sources of the {fact} disagree: {sources}; send it once, or the same everywhere")]
    IdentityConflict {
        /// Which fact.
        fact: Cow<'static, str>,
        /// Which sources, by kind.
        sources: String,
    },
    /// An identity fact is no id, or is missing (R3).
    #[error("the {fact} can't be used: {fault}")]
    IdentityInvalid {
        /// Which fact.
        fact: Cow<'static, str>,
        /// What is wrong.
        fault: IdFault,
    },
    /// The caller must say who it is (R4).
    #[error("this needs an authenticated caller; send a bearer token")]
    Unauthenticated,
    /// The caller may not (R4).
    #[error("the caller may not do this")]
    Denied,
    /// The body is no such command (R5).
    #[error("the body can't be read at '{path}': {reason}")]
    BodyInvalid {
        /// The path of the bad field.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The command is one, and breaks its type's rules (R5).
    #[error("the command is invalid: {}", summary(.errors))]
    Invalid {
        /// Every fault.
        errors: Vec<BindingError>,
    },
    /// The body is too large (R5).
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge {
        /// The bound.
        limit: usize,
    },
    /// A header or parameter is not what it must be.
    #[error("{name} can't be used: {reason}")]
    ParameterInvalid {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A transformer changed the identity (R6).
    #[error("the node's transformer changed the command's identity; its operator has to mend it")]
    TransformerIdentity,
    /// The request id is no id, or one of the system's own (R8).
    #[error("the request id can't be used: {fault}; use 1 to 128 visible characters")]
    RequestIdInvalid {
        /// What is wrong.
        fault: IdFault,
    },
    /// The request id belongs to another request (R13).
    #[error("this request id was used for another request; make a new one for each request")]
    RequestIdReused,
    /// A creation of what exists (R10).
    #[error("the aggregate exists already")]
    AggregateExists,
    /// An update of what doesn't exist (R10), or may not be seen (R57).
    #[error("the aggregate doesn't exist")]
    NotFound,
    /// The aggregate is deleted (R11).
    #[error("the aggregate is deleted; only recovering it is possible")]
    Deleted,
    /// A version that can't be read, for it was not reached.
    #[error("version {version} was not reached")]
    VersionNotReached {
        /// The version asked for.
        version: Version,
    },
    /// Another owner's aggregate (R57).
    #[error("the aggregate belongs to another owner")]
    OtherOwner,
    /// Another space's aggregate (R57).
    #[error("the aggregate lies in another space")]
    OtherSpace,
    /// The command waits for an aggregate that waits for it (R30).
    #[error("the aggregate is already deciding a command of this call chain: {chain}")]
    Reentrant {
        /// The cycle, by aggregate.
        chain: String,
    },
    /// The chain of commands is too long to be meant (spec/08).
    #[error("the chain of commands is longer than {max}")]
    ChainTooDeep {
        /// The bound.
        max: usize,
    },
    /// A bound is reached (R31).
    #[error("too much is going on ({}); try again with the same request id", .bound.config_key())]
    Busy {
        /// Which bound.
        bound: Bound,
    },
    /// The deadline passed before the command was decided, or no answer came in time (R22, R31).
    #[error("no answer in time; try again with the same request id")]
    Timeout,
    /// User code panicked (R32).
    #[error("the command's function failed; nothing was committed")]
    Panicked,
    /// Deciding took too long (R35).
    #[error("deciding took too long; nothing was committed")]
    DecideTimeout,
    /// The expected version is not the current one (R53).
    #[error(
        "version {expected} was expected, the aggregate is at {current}; read it and decide anew"
    )]
    VersionMismatch {
        /// What the caller expects.
        expected: Version,
        /// What is there.
        current: Version,
    },
    /// Others were faster, again and again (R52).
    #[error("other commands for this aggregate were faster; try again with the same request id")]
    Conflict,
    /// Whether it committed couldn't be found out (R54).
    #[error("whether this committed is not known; ask again with the same request id")]
    OutcomeUnknown,
    /// Storage can't be reached, and nothing was sent to it (R54).
    #[error("storage can't be reached; try again with the same request id")]
    StorageUnavailable,
    /// An event in the log can't be decoded here (R50).
    #[error("the log holds an event that this node can't read; its operator has to mend it")]
    EventUnreadable,
    /// The commit would be too large (spec/05).
    #[error("the events take {bytes} bytes, more than {limit}")]
    EventsTooLarge {
        /// What they take.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// What the command's function gave can't be written: a float that is no number, say.
    #[error("JSON can't hold what the command's function gave, {reason}; nothing was committed")]
    Unwritable {
        /// What of it, and why.
        reason: String,
    },
    /// Domain code refuses (R56).
    #[error("{}", .0.message)]
    Rejected(Rejection),
    /// Nothing here can ever signal the stage (R61).
    #[error("nothing in this context can reach {stage}; GET /wow/metadata lists what can")]
    StageUnavailable {
        /// The stage and what it was narrowed to.
        stage: String,
    },
    /// The stage was not reached in time (R63).
    #[error("the stage was not reached in time; what is known of the command is in this answer")]
    WaitTimeout,
    /// The node is stopping (R34).
    #[error("the node is shutting down; try again with the same request id")]
    ShuttingDown,
    /// A command function sends, and nothing can send.
    #[error("this node can't send commands from a command function")]
    SenderMissing,
    /// A fault of the node's own.
    #[error("the node failed; its log says how")]
    Internal,
}

fn summary(errors: &[BindingError]) -> String {
    let all: Vec<_> = errors
        .iter()
        .map(|error| format!("{} {}", error.name, error.msg))
        .collect();
    all.join("; ")
}

impl CommandError {
    /// Its stable code.
    pub fn code(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::TypeUnknown { .. } => "wow.command.type-unknown",
            Self::IdentityConflict { .. } => "wow.command.identity-conflict",
            Self::IdentityInvalid { .. } => "wow.command.identity-invalid",
            Self::Unauthenticated => "wow.access.unauthenticated",
            Self::Denied => "wow.access.denied",
            Self::BodyInvalid { .. } => "wow.command.body-invalid",
            Self::Invalid { .. } => "wow.command.invalid",
            Self::BodyTooLarge { .. } => "wow.command.body-too-large",
            Self::ParameterInvalid { .. } => "wow.command.parameter-invalid",
            Self::TransformerIdentity => "wow.command.transformer-identity",
            Self::RequestIdInvalid { .. } => "wow.command.request-id-invalid",
            Self::RequestIdReused => "wow.command.request-id-reused",
            Self::AggregateExists => "wow.aggregate.exists",
            Self::NotFound => "wow.aggregate.not-found",
            Self::Deleted => "wow.aggregate.deleted",
            Self::VersionNotReached { .. } => "wow.aggregate.version-not-reached",
            Self::OtherOwner => "wow.access.owner",
            Self::OtherSpace => "wow.access.space",
            Self::Reentrant { .. } => "wow.command.reentrant",
            Self::ChainTooDeep { .. } => "wow.command.chain-too-deep",
            Self::Busy { .. } => "wow.command.busy",
            Self::Timeout => "wow.command.timeout",
            Self::Panicked => "wow.command.panicked",
            Self::DecideTimeout => "wow.command.decide-timeout",
            Self::VersionMismatch { .. } => "wow.command.version-mismatch",
            Self::Conflict => "wow.command.conflict",
            Self::OutcomeUnknown => "wow.command.outcome-unknown",
            Self::StorageUnavailable => "wow.storage.unavailable",
            Self::EventUnreadable => "wow.log.event-unreadable",
            Self::EventsTooLarge { .. } => "wow.command.events-too-large",
            Self::Unwritable { .. } => "wow.command.unwritable",
            Self::Rejected(rejection) => return rejection.code.clone(),
            Self::StageUnavailable { .. } => "wow.wait.stage-unavailable",
            Self::WaitTimeout => "wow.wait.timeout",
            Self::ShuttingDown => "wow.node.shutting-down",
            Self::SenderMissing => "wow.command.sender-missing",
            Self::Internal => "wow.node.internal",
        })
    }

    /// Whether the same request, with the same request id, may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Timeout
                | Self::DecideTimeout
                | Self::Conflict
                | Self::OutcomeUnknown
                | Self::StorageUnavailable
                | Self::EventUnreadable
                | Self::WaitTimeout
                | Self::ShuttingDown
        )
    }

    /// The faults of the body, one by one.
    pub fn binding_errors(&self) -> Vec<BindingError> {
        match self {
            Self::BodyInvalid { path, reason } => vec![BindingError::new(path, reason)],
            Self::Invalid { errors } => errors.clone(),
            Self::ParameterInvalid { name, reason } => vec![BindingError::new(name, reason)],
            Self::IdentityInvalid { fact, fault } => {
                vec![BindingError::new(fact.clone(), fault.to_string())]
            }
            _ => Vec::new(),
        }
    }

    /// The kind of a rejection by domain code; none for errors of the system's own.
    pub fn rejection_kind(&self) -> Option<RejectionKind> {
        match self {
            Self::Rejected(rejection) => Some(rejection.kind),
            _ => None,
        }
    }
}

impl From<AccessError> for CommandError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Unauthenticated => Self::Unauthenticated,
            AccessError::Denied => Self::Denied,
        }
    }
}

impl From<Rejection> for CommandError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}
