//! The one table of error codes: the status each has over HTTP, whether `Retry-After` goes with
//! it, and what its caller should do. `/wow/metadata` serves it.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use serde::Serialize;
use wow_kernel::error::CommandError;
use wow_kernel::model::{BindingError, RejectionKind};

/// The code of an answer without error.
pub(super) const OK: &str = "Ok";

/// One error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorRow {
    /// The code.
    pub code: &'static str,
    /// The status it has over HTTP.
    pub status: u16,
    /// After how many seconds trying again makes sense; where it is given, the header is sent.
    pub retry_after: Option<u32>,
    /// Whether the same request, with the same request id, may succeed later.
    pub retryable: bool,
    /// What the caller should do.
    pub advice: &'static str,
}

const fn row(code: &'static str, status: u16, advice: &'static str) -> ErrorRow {
    ErrorRow {
        code,
        status,
        retry_after: None,
        retryable: false,
        advice,
    }
}

const fn later(code: &'static str, status: u16, advice: &'static str) -> ErrorRow {
    ErrorRow {
        retryable: true,
        ..row(code, status, advice)
    }
}

const fn after(code: &'static str, status: u16, seconds: u32, advice: &'static str) -> ErrorRow {
    ErrorRow {
        retry_after: Some(seconds),
        ..later(code, status, advice)
    }
}

/// Every code of the system's own. Domain code brings its own, with the status of its kind.
#[rustfmt::skip] // one row a line, so that it reads as a table
pub const TABLE: &[ErrorRow] = &[
    row("wow.command.type-unknown", 404, "name a type that GET /wow/metadata lists"),
    row("wow.command.identity-conflict", 400, "send the fact once, or the same everywhere"),
    row("wow.command.identity-invalid", 400, "send an id of 1 to 128 characters"),
    row("wow.command.body-invalid", 400, "mend the body at the field that is named"),
    row("wow.command.invalid", 400, "mend every field that is named"),
    row("wow.command.body-too-large", 413, "send a smaller body"),
    row("wow.command.parameter-invalid", 400, "mend the header or parameter that is named"),
    row("wow.command.transformer-identity", 500, "tell the node's operator"),
    row("wow.command.request-id-invalid", 400, "send 1 to 128 visible characters, not 'wow:…'"),
    row("wow.command.request-id-reused", 409, "make a new request id for each request"),
    row("wow.command.reentrant", 409, "break the cycle of commands"),
    row("wow.command.chain-too-deep", 409, "break the loop of commands"),
    after("wow.command.busy", 429, 1, "try again with the same request id, less at once"),
    later("wow.command.timeout", 504, "try again with the same request id"),
    row("wow.command.panicked", 500, "tell the node's operator; nothing was committed"),
    later("wow.command.decide-timeout", 504, "try again with the same request id"),
    row("wow.command.version-mismatch", 409, "read the aggregate and decide anew"),
    later("wow.command.conflict", 409, "try again with the same request id"),
    later("wow.command.outcome-unknown", 504, "ask again with the same request id"),
    row("wow.command.events-too-large", 413, "send a command that changes less at once"),
    row("wow.command.unwritable", 500, "tell the node's operator; nothing was committed"),
    row("wow.command.sender-missing", 500, "tell the node's operator"),
    row("wow.command.service-missing", 409, "tell the node's operator to provide the service"),
    row("wow.aggregate.exists", 409, "use another id, or update what is there"),
    row("wow.aggregate.not-found", 404, "create it first, or look at tenant and owner"),
    row("wow.aggregate.deleted", 410, "recover it first"),
    row("wow.aggregate.version-not-reached", 400, "read a version that exists"),
    row("wow.access.unauthenticated", 401, "send a valid bearer token"),
    row("wow.access.denied", 403, "ask for the right to do this"),
    row("wow.access.owner", 403, "act for the owner of the aggregate"),
    row("wow.access.space", 403, "act in the space of the aggregate"),
    row("wow.wait.stage-unavailable", 400, "wait for a stage that GET /wow/metadata lists"),
    later("wow.wait.timeout", 504, "ask again with the same request id"),
    after("wow.storage.unavailable", 503, 2, "try again with the same request id"),
    after("wow.log.event-unreadable", 503, 30, "tell the node's operator"),
    after("wow.node.shutting-down", 503, 1, "try again with the same request id"),
    after("wow.node.not-ready", 503, 1, "send to another node, or wait"),
    row("wow.node.internal", 500, "tell the node's operator"),
    row("wow.http.not-found", 404, "use a path that GET /v3/api-docs lists"),
    row("wow.http.method-not-allowed", 405, "use a method that the Allow header lists"),
    row("wow.http.unsupported-media-type", 415, "send application/json, not compressed"),
    row("wow.http.path-invalid", 400, "percent-encode the path as UTF-8"),
    row("wow.http.uri-too-long", 414, "send a shorter URL"),
    row("wow.http.headers-too-large", 431, "send fewer or shorter headers"),
    later("wow.http.body-timeout", 408, "send the body at once"),
    row("wow.http.body-broken", 400, "send the whole body"),
];

/// The row of a code; none where the code isn't the system's own.
pub(super) fn find(code: &str) -> Option<&'static ErrorRow> {
    TABLE.iter().find(|row| row.code == code)
}

/// The row of every fault of the node's own making, for a code that the table misses.
const INTERNAL: ErrorRow = row("wow.node.internal", 500, "tell the node's operator");

/// Why a request is refused: by admission and what follows, or already at this edge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// By admission or what follows it.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// No route has this path.
    #[error("there is nothing at this path; GET /v3/api-docs lists what there is")]
    NotFound,
    /// The path has other verbs.
    #[error("this path takes {allow}")]
    MethodNotAllowed {
        /// The verbs it has, as the header lists them.
        allow: String,
    },
    /// The body isn't JSON.
    #[error("a body has to be sent with 'Content-Type: application/json', not compressed")]
    UnsupportedMediaType,
    /// A segment of the path can't be decoded.
    #[error("the path is badly percent-encoded, or isn't UTF-8")]
    PathInvalid,
    /// The URL is too long.
    #[error("the URL is longer than {limit} bytes")]
    UriTooLong {
        /// The bound.
        limit: usize,
    },
    /// The headers are too large.
    #[error("the headers take more than {limit} bytes")]
    HeadersTooLarge {
        /// The bound.
        limit: usize,
    },
    /// The body didn't come in time.
    #[error("the body didn't arrive in time")]
    BodyTimeout,
    /// The body ended early, or broke the protocol.
    #[error("the body didn't arrive whole")]
    BodyBroken,
    /// The node doesn't run yet what it owns.
    #[error("the node isn't ready")]
    NotReady,
}

impl Refusal {
    /// Its stable code.
    pub fn code(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Command(error) => return error.code(),
            Self::NotFound => "wow.http.not-found",
            Self::MethodNotAllowed { .. } => "wow.http.method-not-allowed",
            Self::UnsupportedMediaType => "wow.http.unsupported-media-type",
            Self::PathInvalid => "wow.http.path-invalid",
            Self::UriTooLong { .. } => "wow.http.uri-too-long",
            Self::HeadersTooLarge { .. } => "wow.http.headers-too-large",
            Self::BodyTimeout => "wow.http.body-timeout",
            Self::BodyBroken => "wow.http.body-broken",
            Self::NotReady => "wow.node.not-ready",
        })
    }

    /// Its faults one by one.
    pub fn binding_errors(&self) -> Vec<BindingError> {
        match self {
            Self::Command(error) => error.binding_errors(),
            _ => Vec::new(),
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Command(error) => status_of(error),
            _ => status(find(&self.code()).unwrap_or(&INTERNAL).status),
        }
    }

    pub(super) fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Command(error) => retry_after_of(error),
            _ => find(&self.code()).and_then(|row| row.retry_after),
        }
    }
}

/// The status of a command's failure.
pub(super) fn status_of(error: &CommandError) -> StatusCode {
    match error.rejection_kind() {
        Some(RejectionKind::Invalid) => StatusCode::BAD_REQUEST,
        Some(RejectionKind::Forbidden) => StatusCode::FORBIDDEN,
        Some(RejectionKind::NotFound) => StatusCode::NOT_FOUND,
        Some(RejectionKind::Conflict) => StatusCode::CONFLICT,
        None => status(find(&error.code()).unwrap_or(&INTERNAL).status),
    }
}

/// After how many seconds a failed command may be tried again, where that can be said.
pub(super) fn retry_after_of(error: &CommandError) -> Option<u32> {
    match error.rejection_kind() {
        Some(_) => None,
        None => find(&error.code()).and_then(|row| row.retry_after),
    }
}

fn status(number: u16) -> StatusCode {
    StatusCode::from_u16(number).expect("the table holds valid statuses only")
}

#[cfg(test)]
mod tests;
