//! How a command function sends another command.

use async_trait::async_trait;

use crate::error::CommandError;
use crate::result::CommandResult;
use crate::submission::Submission;

/// Sends a command through admission, as any entry point does.
#[async_trait]
pub trait CommandSender: Send + Sync {
    /// Submits, waits for the plan's stage, and answers.
    ///
    /// # Errors
    /// Why the command was refused or failed.
    async fn send(&self, submission: Submission) -> Result<CommandResult, CommandError>;
}
