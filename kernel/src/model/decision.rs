//! What deciding answers: events and a result, or a rejection.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::finite;

/// What a command decided: the events to commit, and what its caller is told.
#[derive(Debug, Clone)]
pub struct Decision<E> {
    pub(crate) events: Vec<E>,
    pub(crate) result: Map<String, Value>,
    /// What of the result JSON can't hold.
    pub(crate) unwritable: Option<String>,
}

impl<E> Decision<E> {
    /// Commits one event.
    pub fn event(event: E) -> Self {
        Self::events([event])
    }

    /// Commits these events, in this order, as one commit.
    pub fn events(events: impl IntoIterator<Item = E>) -> Self {
        Self {
            events: events.into_iter().collect(),
            result: Map::new(),
            unwritable: None,
        }
    }

    /// Commits nothing: the command is answered with the current version (R45).
    pub fn none() -> Self {
        Self::events([])
    }

    /// Adds a value to the result map, which is stored with the commit and shown to the caller.
    /// A value that JSON can't hold, such as a float that is no number, fails the command.
    #[must_use]
    pub fn with_result(mut self, name: &str, value: impl Serialize) -> Self {
        match finite::check(&value).and_then(|()| serde_json::to_value(value)) {
            Ok(value) => {
                self.result.insert(name.to_owned(), value);
            }
            Err(error) => {
                self.unwritable
                    .get_or_insert_with(|| format!("result '{name}': {error}"));
            }
        }
        self
    }
}

/// What kind of "no" a rejection is; 400 by default (R56).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
pub enum RejectionKind {
    /// The command can't be done as it is.
    Invalid,
    /// The caller may not.
    Forbidden,
    /// Something it names isn't there.
    NotFound,
    /// It doesn't fit the present state.
    Conflict,
}

/// Domain code refuses a command: its own code and message, nothing committed (R56).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, serde::Deserialize)]
#[error("{code}: {message}")]
pub struct Rejection {
    /// The domain's stable code: `account.frozen`.
    pub code: Cow<'static, str>,
    /// What the caller is told.
    pub message: String,
    /// What kind of refusal it is.
    pub kind: RejectionKind,
}

impl Rejection {
    /// A rejection with the domain's code and a message for the caller.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            kind: RejectionKind::Invalid,
        }
    }

    /// The same, of another kind.
    #[must_use]
    pub fn kind(mut self, kind: RejectionKind) -> Self {
        self.kind = kind;
        self
    }
}
