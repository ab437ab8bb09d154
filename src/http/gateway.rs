//! What the HTTP edge needs of the node behind it. `src/node.rs` hands the real one in.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use wow_kernel::access::Principal;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::error::CommandError;
use wow_kernel::id::{EpochMillis, Version};
use wow_kernel::registry::AggregateDefinition;
use wow_kernel::result::CommandResult;
use wow_kernel::submission::{IdentityFacts, Submission};

/// Which aggregate a caller wants to read. Whether it may is for the node to judge, by the same
/// rules of identity and access as for commands.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Its type.
    pub aggregate: Arc<AggregateDefinition>,
    /// What the sources say of its identity.
    pub facts: IdentityFacts,
    /// Who asks.
    pub principal: Principal,
}

/// Which of an aggregate's states is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAt {
    /// The newest one.
    Latest,
    /// The one at a version.
    Version(Version),
    /// The one at a time.
    Time(EpochMillis),
}

/// A commit and the state after it.
#[derive(Debug, Clone)]
pub struct TracedCommit {
    /// The commit.
    pub commit: Commit,
    /// The state after it, as JSON.
    pub state: String,
}

/// The node, as the HTTP edge sees it.
#[async_trait]
pub trait Gateway: Send + Sync {
    /// Submits a request and waits for its plan's stage. Dropping the future ends the wait and
    /// nothing else (R55).
    ///
    /// # Errors
    /// Where the request never became a command. What became one answers `Ok`, with the reason
    /// in [`CommandResult::error`] where it failed.
    async fn submit(&self, submission: Submission) -> Result<CommandResult, CommandError>;

    /// Submits a request and answers with every stage as it comes (R64); the last item ends it.
    fn stream(&self, submission: Submission)
    -> mpsc::Receiver<Result<CommandResult, CommandError>>;

    /// Whether the node takes commands (R34).
    fn is_accepting(&self) -> bool;

    /// Whether the node runs what it owns.
    fn is_ready(&self) -> bool;

    /// A state as JSON.
    ///
    /// # Errors
    /// Why it can't be read: identity, access, absence, storage.
    async fn state(&self, request: ReadRequest, at: StateAt) -> Result<String, CommandError>;

    /// The newest state with the system's facts about the aggregate.
    ///
    /// # Errors
    /// Why it can't be read.
    async fn snapshot(&self, request: ReadRequest) -> Result<StoredSnapshot, CommandError>;

    /// The commits with versions in `head ..= tail`, at most `limit` of them, oldest first.
    ///
    /// # Errors
    /// Why they can't be read.
    async fn commits(
        &self,
        request: ReadRequest,
        head: Version,
        tail: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, CommandError>;

    /// The newest `limit` of the commits with versions in `head ..= tail`, oldest first, with the
    /// state after each.
    ///
    /// # Errors
    /// Why they can't be read.
    async fn tracing(
        &self,
        request: ReadRequest,
        head: Version,
        tail: Version,
        limit: usize,
    ) -> Result<Vec<TracedCommit>, CommandError>;
}

/// Tells who calls (R4, spec/06).
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// The caller that a bearer token proves, anonymous where there is none.
    ///
    /// # Errors
    /// [`CommandError::Unauthenticated`], when the token proves nothing.
    async fn authenticate(&self, bearer: Option<&str>) -> Result<Principal, CommandError>;
}
