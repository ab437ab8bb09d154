//! States: the newest, at a version, at a time, and the snapshot's.

use super::{ReadRequest, Reader, Seen, SnapshotRead, StateRead, contained};
use crate::commit::StoredSnapshot;
use crate::error::CommandError;
use crate::execute::Loaded;
use crate::id::{EpochMillis, Version};

impl Reader {
    /// The newest state.
    ///
    /// # Errors
    /// [`CommandError::NotFound`] for what doesn't exist, is deleted or is not the caller's to
    /// see; the identity's and the read rule's errors; what storage and the log can't give.
    pub async fn state(&self, request: &ReadRequest) -> Result<StateRead, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            seen.state_of(&seen.newest)
        })
        .await
    }

    /// The state at a version.
    ///
    /// # Errors
    /// As [`Reader::state`]; [`CommandError::VersionNotReached`], and
    /// [`CommandError::NotFound`] where it was deleted at that version.
    pub async fn state_at_version(
        &self,
        request: &ReadRequest,
        version: Version,
    ) -> Result<StateRead, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            if version == 0 || version > seen.newest.version {
                return Err(CommandError::VersionNotReached { version });
            }
            if version == seen.newest.version {
                return seen.state_of(&seen.newest);
            }
            let loaded = self.load_at(&seen, version).await?;
            state_unless_deleted(&seen, &loaded)
        })
        .await
    }

    /// The state at a time: after the last commit before the first that is later.
    ///
    /// # Errors
    /// As [`Reader::state`]; [`CommandError::NotFound`] where it didn't exist yet, or was deleted
    /// then.
    pub async fn state_at_time(
        &self,
        request: &ReadRequest,
        time: EpochMillis,
    ) -> Result<StateRead, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            if seen.newest.facts.event_time <= time {
                return seen.state_of(&seen.newest);
            }
            let loaded = self.replay_until(&seen, time).await?;
            state_unless_deleted(&seen, &loaded)
        })
        .await
    }

    /// The snapshot. One that this node can't read is answered with what the log says of the
    /// same version (R50).
    ///
    /// # Errors
    /// As [`Reader::state`]; [`CommandError::NotFound`] where none is written yet, or where it
    /// holds the aggregate as deleted.
    pub async fn snapshot(&self, request: &ReadRequest) -> Result<SnapshotRead, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            let stored = self.snapshots.find(&seen.key).await;
            let stored = stored.map_err(|error| seen.failed(&error.into()))?;
            let snapshot = stored.ok_or(CommandError::NotFound)?;
            let snapshot_time = snapshot.snapshot_time;
            let state = if is_readable(&seen, &snapshot) {
                StateRead {
                    aggregate: seen.aggregate.clone(),
                    key: seen.key.clone(),
                    version: snapshot.version,
                    facts: snapshot.facts.into(),
                    state: snapshot.state,
                }
            } else {
                seen.state_of(&self.load_at(&seen, snapshot.version).await?)?
            };
            if state.facts.deleted {
                return Err(CommandError::NotFound);
            }
            Ok(SnapshotRead {
                state,
                snapshot_time,
            })
        })
        .await
    }

    async fn replay_until(&self, seen: &Seen, time: EpochMillis) -> Result<Loaded, CommandError> {
        let mut loaded = seen.before_first()?;
        loop {
            let page = self.page(seen, loaded.version, seen.newest.version).await?;
            if page.is_empty() {
                return Ok(loaded);
            }
            for commit in &page {
                if commit.committed_at > time {
                    return Ok(loaded);
                }
                loaded = seen.apply(loaded, commit)?;
            }
        }
    }
}

fn state_unless_deleted(seen: &Seen, loaded: &Loaded) -> Result<StateRead, CommandError> {
    if loaded.version == 0 || loaded.facts.deleted {
        return Err(CommandError::NotFound);
    }
    seen.state_of(loaded)
}

/// Whether this code wrote the snapshot. Loading warns of those that it can't read (R50).
fn is_readable(seen: &Seen, snapshot: &StoredSnapshot) -> bool {
    snapshot.state_revision == seen.aggregate.spec.state_revision
        && seen.aggregate.decode_state(&snapshot.state).is_ok()
}
