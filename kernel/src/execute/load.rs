//! The state of an aggregate, and how it comes out of snapshot and log (R50).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::commit::{AggregateFacts, Commit, StoredSnapshot};
use crate::error::CommandError;
use crate::id::{AggregateKey, OwnerId, Position, Version};
use crate::model::{EventFault, OwnerPolicy};
use crate::ports::{ColdHistory, CommitLog, History, KernelObserver, StorageError};
use crate::recent::{RecentRequests, RequestRecord};
use crate::registry::{AggregateDefinition, ErasedState, SystemEvent};

/// How many commits one read of a long history takes.
const PAGE: usize = 500;

/// An aggregate as a lane holds it between commands.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The newest version; 0 where nothing was committed.
    pub version: Version,
    /// The position of the newest commit; 0 where there is none.
    pub position: Position,
    /// The user's state.
    pub state: ErasedState,
    /// The system's facts.
    pub facts: Arc<AggregateFacts>,
    /// The requests committed most recently (R41).
    pub recent: RecentRequests,
}

/// Why an aggregate can't be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An event can't be read (R50).
    #[error("{key} version {version}: {fault}")]
    Event {
        /// Which aggregate.
        key: String,
        /// Which version.
        version: Version,
        /// What is wrong with the event.
        fault: EventFault,
    },
    /// The user's `evolve`, or the making of the initial state (version 0), panicked (R32).
    #[error("{key} version {version}: evolve panicked")]
    Panicked {
        /// Which aggregate.
        key: String,
        /// Which version.
        version: Version,
    },
    /// The log has a hole: never loaded over (R50).
    #[error("{key}: version {expected} is missing from the log, {found} follows")]
    Gap {
        /// Which aggregate.
        key: String,
        /// The version that should follow.
        expected: Version,
        /// The one that does.
        found: Version,
    },
}

impl From<&StorageError> for CommandError {
    fn from(error: &StorageError) -> Self {
        match error {
            StorageError::Unavailable(_) => Self::StorageUnavailable,
            StorageError::Corrupt(_) => Self::EventUnreadable,
        }
    }
}

impl From<&LoadError> for CommandError {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::Storage(error) => error.into(),
            LoadError::Panicked { .. } => Self::Panicked,
            LoadError::Event { .. } | LoadError::Gap { .. } => Self::EventUnreadable,
        }
    }
}

impl Loaded {
    /// The aggregate before its first commit.
    ///
    /// # Errors
    /// [`LoadError::Panicked`] where the user's code for it does.
    pub fn initial(
        definition: &AggregateDefinition,
        key: &AggregateKey,
        recent_capacity: usize,
    ) -> Result<Self, LoadError> {
        let state = catch_unwind(AssertUnwindSafe(|| definition.initial(&key.id)));
        Ok(Self {
            version: 0,
            position: 0,
            state: state.map_err(|_panic| LoadError::Panicked {
                key: key.to_string(),
                version: 0,
            })?,
            facts: Arc::default(),
            recent: RecentRequests::new(recent_capacity),
        })
    }

    /// What a snapshot holds; none where it was written by another revision, can't be read, or
    /// was made from a commit that the log doesn't have: the log is the truth (R50).
    fn from_snapshot(
        definition: &AggregateDefinition,
        snapshot: StoredSnapshot,
        requests: &[RequestRecord],
        recent_capacity: usize,
    ) -> Option<Self> {
        // The revision is judged before anything is decoded.
        if snapshot.state_revision != definition.spec.state_revision {
            tracing::info!(
                aggregate_type = %snapshot.key.aggregate_type,
                found = snapshot.state_revision,
                wanted = definition.spec.state_revision,
                "snapshot of another state revision ignored"
            );
            return None;
        }
        if !is_made_from(&snapshot, requests.last()) {
            tracing::error!(key = %snapshot.key, version = snapshot.version, "snapshot without its commit ignored");
            return None;
        }
        let state = match decode_state(definition, &snapshot.state) {
            Ok(state) => state,
            Err(reason) => {
                tracing::warn!(key = %snapshot.key, version = snapshot.version, reason, "unreadable snapshot ignored");
                return None;
            }
        };
        let mut recent = RecentRequests::new(recent_capacity);
        if let Some(json) = &snapshot.recent_requests {
            recent.remember_json(json);
        }
        for request in requests {
            recent.remember(request.clone());
        }
        Some(Self {
            version: snapshot.version,
            position: snapshot.position,
            state,
            facts: Arc::new(snapshot.facts),
            recent,
        })
    }

    /// Applies the next commit.
    ///
    /// # Errors
    /// [`LoadError`] where it isn't the next one or can't be read; then this value is no longer
    /// a state of the aggregate and has to be dropped.
    pub fn apply(
        mut self,
        definition: &AggregateDefinition,
        commit: &Commit,
    ) -> Result<Self, LoadError> {
        let key = || commit.key.to_string();
        if commit.version != self.version + 1 {
            let expected = self.version + 1;
            return Err(LoadError::Gap {
                key: key(),
                expected,
                found: commit.version,
            });
        }
        let version = commit.version;
        let unreadable = |fault| LoadError::Event {
            key: key(),
            version,
            fault,
        };
        let state = self.state;
        self.state = catch_unwind(AssertUnwindSafe(|| definition.apply(state, &commit.events)))
            .map_err(|_panic| LoadError::Panicked {
                key: key(),
                version,
            })?
            .map_err(unreadable)?;
        let facts = Arc::make_mut(&mut self.facts);
        note_commit(facts, definition.spec.owner, commit).map_err(unreadable)?;
        self.recent.remember_commit(commit);
        self.version = version;
        self.position = commit.position;
        Ok(self)
    }
}

/// Whether the log has the commit that a snapshot was made from. A log that was restored to an
/// earlier time may not, or may have gone another way since.
fn is_made_from(snapshot: &StoredSnapshot, newest: Option<&RequestRecord>) -> bool {
    newest.is_some_and(|newest| {
        newest.version == snapshot.version
            && (snapshot.facts.event_id).is_none_or(|id| id == newest.command_id)
    })
}

/// Reads a state by the user's own serde, which may panic like any user code.
fn decode_state(definition: &AggregateDefinition, json: &str) -> Result<ErasedState, String> {
    match catch_unwind(AssertUnwindSafe(|| definition.decode_state(json))) {
        Ok(decoded) => decoded.map_err(|error| error.to_string()),
        Err(_panic) => Err("reading it panicked".to_owned()),
    }
}

/// Brings the system's facts about an aggregate up to a commit.
pub(crate) fn note_commit(
    facts: &mut AggregateFacts,
    owner_policy: OwnerPolicy,
    commit: &Commit,
) -> Result<(), EventFault> {
    if commit.version == 1 {
        facts.owner = match owner_policy {
            OwnerPolicy::Never => OwnerId::none(),
            OwnerPolicy::Always | OwnerPolicy::AggregateId => commit.owner.clone(),
        };
        facts.space = commit.space.clone();
        facts.first_operator = commit.principal.clone();
        facts.first_event_time = commit.committed_at;
    }
    if facts.operator != commit.principal {
        facts.operator = commit.principal.clone();
    }
    facts.event_time = commit.committed_at;
    facts.event_id = Some(commit.command_id);
    for event in commit.events.iter() {
        if let Some(event) = SystemEvent::read(event)? {
            event.apply(facts);
        }
    }
    Ok(())
}

/// Loads aggregates from storage.
#[derive(Clone)]
pub struct Loader {
    /// Snapshot and tail.
    pub history: Arc<dyn History>,
    /// The log, for what the tail doesn't hold.
    pub log: Arc<dyn CommitLog>,
    /// Who counts ignored snapshots.
    pub observer: Arc<dyn KernelObserver>,
    /// How many recent requests a state carries (R41).
    pub recent_requests: usize,
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").finish_non_exhaustive()
    }
}

impl Loader {
    /// The newest state of an aggregate; its initial one where nothing was committed.
    ///
    /// # Errors
    /// [`LoadError`].
    pub async fn load(
        &self,
        definition: &AggregateDefinition,
        key: &AggregateKey,
    ) -> Result<Loaded, LoadError> {
        self.load_up_to(definition, key, Version::MAX).await
    }

    /// The state of an aggregate at a version, or the newest before it.
    ///
    /// # Errors
    /// [`LoadError`].
    pub async fn load_up_to(
        &self,
        definition: &AggregateDefinition,
        key: &AggregateKey,
        up_to: Version,
    ) -> Result<Loaded, LoadError> {
        let cold = self.read_cold(key).await?;
        let has_snapshot = cold.snapshot.is_some();
        let mut tail = cold.tail;
        let mut has_more = cold.has_more;
        let from_snapshot = match cold.snapshot {
            Some(snapshot) if snapshot.version <= up_to => {
                self.read_snapshot(definition, snapshot, &cold.requests)
            }
            _ => None,
        };
        let mut loaded = match from_snapshot {
            Some(loaded) => loaded,
            None => {
                if has_snapshot {
                    // The tail begins behind the snapshot that can't be used.
                    tail = Vec::new();
                    has_more = true;
                }
                Loaded::initial(definition, key, self.recent_requests)?
            }
        };
        loop {
            for commit in tail.iter().take_while(|commit| commit.version <= up_to) {
                loaded = loaded.apply(definition, commit)?;
            }
            if !has_more || loaded.version >= up_to {
                return Ok(loaded);
            }
            tail = self
                .log
                .read_aggregate(key, loaded.version, up_to, PAGE)
                .await?;
            has_more = tail.len() == PAGE;
        }
    }

    async fn read_cold(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        match self.history.load(key).await {
            Err(StorageError::Corrupt(reason)) => {
                // It may be the snapshot; the log says whether it is.
                tracing::warn!(%key, reason, "unreadable history, read from the log alone");
                self.observer.snapshot_ignored();
                Ok(ColdHistory {
                    has_more: true,
                    ..ColdHistory::default()
                })
            }
            read => read,
        }
    }

    fn read_snapshot(
        &self,
        definition: &AggregateDefinition,
        snapshot: StoredSnapshot,
        requests: &[RequestRecord],
    ) -> Option<Loaded> {
        let loaded = Loaded::from_snapshot(definition, snapshot, requests, self.recent_requests);
        if loaded.is_none() {
            self.observer.snapshot_ignored();
        }
        loaded
    }
}
