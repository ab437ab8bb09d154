//! The command topic, for types whose commands must survive a crash once accepted.

use std::sync::Arc;

use async_trait::async_trait;

use crate::command::BuiltCommand;

/// Why a topic didn't take a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// The broker can't be reached, or refuses for now.
    #[error("the broker is unavailable: {0}")]
    Unavailable(String),
    /// The record is larger than the broker takes.
    #[error("the record is too large")]
    TooLarge,
}

/// Writes commands to the context's topic (R20).
#[async_trait]
pub trait CommandTopic: Send + Sync {
    /// Answers once the broker has acknowledged the record.
    ///
    /// # Errors
    /// [`TopicError`].
    async fn publish(&self, command: Arc<BuiltCommand>) -> Result<(), TopicError>;
}
