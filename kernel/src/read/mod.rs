//! Reads of one aggregate: its state, now or earlier, its snapshot, and its commits (spec/03).
//!
//! A read is let in as a command is: the same identity facts, the type's read rule in place of
//! the command's, then the scope (R57), judged on the aggregate as it is now. What isn't there,
//! is deleted, or may not be seen, does not exist.

mod commits;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::access::{AccessMode, Principal, check_has_owners};
use crate::admission::identity::{self, MarkedId};
use crate::commit::{AggregateFacts, Commit};
use crate::error::CommandError;
use crate::execute::{LoadError, Loaded, Loader, check_scope};
use crate::id::{AggregateKey, AggregateType, EpochMillis, Version};
use crate::ports::{Authorizer, SnapshotStore};
use crate::registry::{AggregateDefinition, Registry};
use crate::submission::IdentityFacts;

/// How many commits a trace answers with unless told otherwise.
pub const TRACE_COMMITS_DEFAULT: usize = 100;

/// The most commits that one read answers with.
pub const READ_COMMITS_MAX: usize = 1000;

/// Roughly the most bytes of commits and states that one read gathers.
pub const READ_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many commits one look into the log takes.
const PAGE: usize = 100;

/// Reads aggregates for callers.
#[derive(Clone)]
pub struct Reader {
    /// The types the node knows.
    pub registry: Arc<Registry>,
    /// Loads states. Readers answer no duplicates, so it need not gather recent requests.
    pub loader: Loader,
    /// The snapshots.
    pub snapshots: Arc<dyn SnapshotStore>,
    /// The user's own say.
    pub authorizer: Arc<dyn Authorizer>,
    /// How callers are known.
    pub mode: AccessMode,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// Whose read of which aggregate.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// The aggregate's type, by its name in the log.
    pub aggregate_type: AggregateType,
    /// What the sources say of the identity (R3).
    pub facts: IdentityFacts,
    /// Who reads.
    pub principal: Principal,
}

/// A state of an aggregate.
#[derive(Debug, Clone)]
pub struct StateRead {
    /// The aggregate's type.
    pub aggregate: Arc<AggregateDefinition>,
    /// Which aggregate.
    pub key: AggregateKey,
    /// The version it had.
    pub version: Version,
    /// The system's facts at that version.
    pub facts: Arc<AggregateFacts>,
    /// The state as JSON.
    pub state: String,
}

/// A snapshot of an aggregate.
#[derive(Debug, Clone)]
pub struct SnapshotRead {
    /// The state that it holds.
    pub state: StateRead,
    /// When it was written.
    pub snapshot_time: EpochMillis,
}

/// Commits of an aggregate, oldest first.
#[derive(Debug, Clone)]
pub struct CommitsRead {
    /// The aggregate's type.
    pub aggregate: Arc<AggregateDefinition>,
    /// The commits.
    pub commits: Vec<Commit>,
}

/// Commits of an aggregate with the states that they made, oldest first.
#[derive(Debug, Clone)]
pub struct TraceRead {
    /// The aggregate's type.
    pub aggregate: Arc<AggregateDefinition>,
    /// The commits.
    pub commits: Vec<TracedCommit>,
}

/// A commit and what it made of the aggregate.
#[derive(Debug, Clone)]
pub struct TracedCommit {
    /// The commit.
    pub commit: Commit,
    /// The system's facts after it.
    pub facts: Arc<AggregateFacts>,
    /// The state after it, as JSON.
    pub state: String,
}

/// An aggregate that the caller may see, as it is now.
struct Seen {
    aggregate: Arc<AggregateDefinition>,
    key: AggregateKey,
    newest: Loaded,
}

impl Seen {
    fn state_of(&self, loaded: &Loaded) -> Result<StateRead, CommandError> {
        Ok(StateRead {
            aggregate: self.aggregate.clone(),
            key: self.key.clone(),
            version: loaded.version,
            facts: loaded.facts.clone(),
            state: self.encode(loaded)?,
        })
    }

    fn encode(&self, loaded: &Loaded) -> Result<String, CommandError> {
        self.aggregate.encode_state(&loaded.state).map_err(|error| {
            tracing::error!(key = %self.key, version = loaded.version, %error, "the state can't be written");
            CommandError::Internal
        })
    }

    fn before_first(&self) -> Result<Loaded, CommandError> {
        Loaded::initial(&self.aggregate, &self.key, 0).map_err(|error| self.failed(&error))
    }

    fn apply(&self, loaded: Loaded, commit: &Commit) -> Result<Loaded, CommandError> {
        loaded
            .apply(&self.aggregate, commit)
            .map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &LoadError) -> CommandError {
        read_failed(&self.key, error)
    }
}

impl Reader {
    /// Lets a caller in to an aggregate: type, identity, access, existence, scope.
    async fn see(&self, request: &ReadRequest) -> Result<Seen, CommandError> {
        let aggregate = self
            .registry
            .aggregate(&request.aggregate_type)
            .ok_or_else(|| CommandError::TypeUnknown {
                what: format!("aggregate '{}'", request.aggregate_type),
            })?;
        let rule = aggregate.spec.read_access;
        let claimed = identity::resolve(&identity::Request {
            aggregate,
            rule,
            mode: self.mode,
            principal: &request.principal,
            facts: &request.facts,
            marked: MarkedId::Absent,
            marked_variable: None,
            may_lack_id: false,
        })?;
        check_has_owners(self.mode, rule, aggregate.spec.owner, &request.principal)?;
        self.authorizer
            .authorize(self.mode, rule, &request.principal, &claimed)
            .await?;
        let newest = self
            .loader
            .load(aggregate, &claimed.key)
            .await
            .map_err(|error| read_failed(&claimed.key, &error))?;
        if newest.version == 0 {
            return Err(CommandError::NotFound);
        }
        let policy = aggregate.spec.owner;
        check_scope(
            self.mode,
            policy,
            &request.principal,
            &claimed,
            &newest.facts,
        )?;
        if newest.facts.deleted {
            return Err(CommandError::NotFound);
        }
        Ok(Seen {
            aggregate: aggregate.clone(),
            key: claimed.key,
            newest,
        })
    }

    /// The aggregate at a version that it has reached.
    async fn load_at(&self, seen: &Seen, version: Version) -> Result<Loaded, CommandError> {
        let loaded = self
            .loader
            .load_up_to(&seen.aggregate, &seen.key, version)
            .await;
        loaded.map_err(|error| seen.failed(&error))
    }

    /// The next commits after a version, at most up to another: never none where there are some.
    async fn page(
        &self,
        seen: &Seen,
        after: Version,
        up_to: Version,
    ) -> Result<Vec<Commit>, CommandError> {
        let read = self
            .loader
            .log
            .read_aggregate(&seen.key, after, up_to, PAGE);
        read.await.map_err(|error| seen.failed(&error.into()))
    }
}

fn read_failed(key: &AggregateKey, error: &LoadError) -> CommandError {
    tracing::error!(%key, %error, "the aggregate can't be read");
    error.into()
}

/// Users' code runs in reads too: policies, `evolve`, the state's own serde. What panics there
/// fails the read that ran it only (R32).
async fn contained<T>(
    read: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    AssertUnwindSafe(read)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!("user code panicked during a read");
            Err(CommandError::Panicked)
        })
}
