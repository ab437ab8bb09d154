//! The one way into the running system, for entry points and for in-process code.

use std::sync::Arc;

use tokio::sync::mpsc;
use wow_kernel::error::CommandError;
use wow_kernel::result::CommandResult;
use wow_kernel::submission::Submission;

/// A command that never became one: refused before it had an id.
pub type Refused = CommandError;

/// Sends commands to the node's admission. Cheap to clone; every clone reaches the same node.
#[derive(Debug, Clone)]
pub struct Handle {
    _shared: Arc<()>,
}

impl Handle {
    /// Submits a request and waits for its plan's stage.
    ///
    /// A caller that drops the future ends its wait and nothing else: what was admitted runs to
    /// its end (R55).
    ///
    /// # Errors
    /// [`Refused`] where the request never became a command. What became one answers `Ok`, with
    /// the reason in [`CommandResult::error`] where it failed.
    pub async fn submit(&self, _submission: Submission) -> Result<CommandResult, Refused> {
        Err(CommandError::Internal)
    }

    /// Submits a request and answers with every stage as it comes (R64); the last item ends it.
    pub fn stream(
        &self,
        _submission: Submission,
    ) -> mpsc::Receiver<Result<CommandResult, Refused>> {
        mpsc::channel(8).1
    }

    /// Whether the node takes commands: `false` once it is shutting down (R34).
    pub fn is_accepting(&self) -> bool {
        true
    }

    /// Whether this node runs what it should own, and is not about to stop.
    pub fn is_ready(&self) -> bool {
        true
    }
}
