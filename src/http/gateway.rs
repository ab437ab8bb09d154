//! What the HTTP edge needs of the node behind it: a way in for commands, and reads.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use wow_actors::handle::Handle;
use wow_kernel::access::Principal;
use wow_kernel::error::CommandError;
use wow_kernel::id::{EpochMillis, Version};
use wow_kernel::read::{CommitsRead, ReadRequest, Reader, SnapshotRead, StateRead, TraceRead};
use wow_kernel::result::CommandResult;
use wow_kernel::submission::Submission;

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

    /// A state.
    ///
    /// # Errors
    /// Why it can't be read: identity, access, absence, storage.
    async fn state(&self, request: &ReadRequest, at: StateAt) -> Result<StateRead, CommandError>;

    /// The snapshot.
    ///
    /// # Errors
    /// Why it can't be read.
    async fn snapshot(&self, request: &ReadRequest) -> Result<SnapshotRead, CommandError>;

    /// The commits of a range of versions.
    ///
    /// # Errors
    /// Why they can't be read.
    async fn commits(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
    ) -> Result<CommitsRead, CommandError>;

    /// The first commits of a range of versions, with the state after each.
    ///
    /// # Errors
    /// Why they can't be read.
    async fn trace(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
        limit: usize,
    ) -> Result<TraceRead, CommandError>;
}

/// The node itself: its handle and its reader, and whether what they stand on works.
pub struct NodeGateway {
    handle: Handle,
    reader: Reader,
    stands: Box<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for NodeGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeGateway").finish_non_exhaustive()
    }
}

impl NodeGateway {
    /// The way into a node, which is not ready where it doesn't stand: without its storage, say.
    pub fn new(
        handle: Handle,
        reader: Reader,
        stands: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            handle,
            reader,
            stands: Box::new(stands),
        })
    }
}

#[async_trait]
impl Gateway for NodeGateway {
    async fn submit(&self, submission: Submission) -> Result<CommandResult, CommandError> {
        self.handle.submit(submission).await
    }

    fn stream(
        &self,
        submission: Submission,
    ) -> mpsc::Receiver<Result<CommandResult, CommandError>> {
        self.handle.stream(submission)
    }

    fn is_accepting(&self) -> bool {
        self.handle.is_accepting()
    }

    fn is_ready(&self) -> bool {
        self.handle.is_ready() && (self.stands)()
    }

    async fn state(&self, request: &ReadRequest, at: StateAt) -> Result<StateRead, CommandError> {
        match at {
            StateAt::Latest => self.reader.state(request).await,
            StateAt::Version(version) => self.reader.state_at_version(request, version).await,
            StateAt::Time(time) => self.reader.state_at_time(request, time).await,
        }
    }

    async fn snapshot(&self, request: &ReadRequest) -> Result<SnapshotRead, CommandError> {
        self.reader.snapshot(request).await
    }

    async fn commits(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
    ) -> Result<CommitsRead, CommandError> {
        self.reader.commits(request, versions).await
    }

    async fn trace(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
        limit: usize,
    ) -> Result<TraceRead, CommandError> {
        self.reader.trace(request, versions, limit).await
    }
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
