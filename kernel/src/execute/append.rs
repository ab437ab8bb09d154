//! The append, and finding out what became of it (R52, R54).

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::load::note_commit;
use super::{Executed, Knowledge, Loaded, Run, Try};
use crate::commit::{Commit, StateView};
use crate::error::{Bound, CommandError};
use crate::ports::{AppendError, AppendReceipt, StorageError};
use crate::recent::{RequestRecord, WRITTEN_EVERY};
use crate::registry::{Decided, ErasedState};

/// What became of an append.
enum Appended {
    /// The commit is in the log.
    Yes(AppendReceipt),
    /// Another commit has its version or its request id.
    Conflict,
    /// It is not in the log, and never will be.
    No(CommandError),
    /// Not known, after all the time there is (R54).
    Unknown,
}

impl Run<'_> {
    /// Appends what was decided, and takes the state after it as the newest.
    pub(super) async fn commit(
        &mut self,
        loaded: Loaded,
        known: Knowledge,
        mut decided: Decided,
    ) -> Try {
        let commit = self.build_commit(&loaded, &mut decided);
        let (bytes, limit) = (commit.entry_bytes(), self.kernel.limits.entry_bytes_max);
        if bytes > limit {
            let error = CommandError::EventsTooLarge { bytes, limit };
            return self.confirm(loaded, known, Executed::Failed(error)).await;
        }
        let commit = Arc::new(commit);
        match self.append(&commit).await {
            Appended::Yes(receipt) => self.committed(loaded, decided.state, commit, receipt),
            Appended::Conflict => self.resolve_conflict().await,
            Appended::No(error) => {
                self.lane.cached = Some(loaded);
                error.into()
            }
            Appended::Unknown => CommandError::OutcomeUnknown.into(),
        }
    }

    fn committed(
        &mut self,
        loaded: Loaded,
        state: ErasedState,
        commit: Arc<Commit>,
        receipt: AppendReceipt,
    ) -> Try {
        // The log has let go of it in most cases, so that nothing is copied.
        let mut commit = Arc::try_unwrap(commit).unwrap_or_else(|shared| (*shared).clone());
        commit.position = receipt.position;
        commit.committed_at = receipt.committed_at;
        let mut next = Loaded {
            version: commit.version,
            position: commit.position,
            state: Arc::clone(&state),
            ..loaded
        };
        let facts = Arc::make_mut(&mut next.facts);
        if let Err(fault) = note_commit(facts, self.command.aggregate.spec.owner, &commit) {
            // Our own event, just written, can't be read back: let the next command load it.
            tracing::error!(key = %commit.key, %fault, "a built-in event can't be read");
        }
        next.recent.remember(&RequestRecord::from(&commit));
        let recent_requests = commit
            .version
            .is_multiple_of(WRITTEN_EVERY)
            .then(|| Arc::from(next.recent.to_json()));
        let view = StateView {
            commit: Arc::new(commit),
            state,
            facts: Arc::clone(&next.facts),
            recent_requests,
        };
        self.lane.cached = Some(next);
        Try::Answer(Executed::Committed(view))
    }

    /// Tries the append until its outcome is known: the same events again, never a new decision.
    async fn append(&mut self, commit: &Arc<Commit>) -> Appended {
        let deadline = self.kernel.clock.monotonic() + self.kernel.limits.append_timeout;
        let mut tries = 0;
        loop {
            let outcome = self.append_once(commit, deadline).await;
            let first = !std::mem::replace(&mut self.append_tried, true);
            match outcome {
                Ok(receipt) => return Appended::Yes(receipt),
                Err(AppendError::VersionConflict | AppendError::DuplicateRequest) => {
                    return Appended::Conflict;
                }
                Err(error) if first && !matches!(error, AppendError::OutcomeUnknown(_)) => {
                    self.append_tried = false;
                    return Appended::No(refused(commit, &error));
                }
                Err(error) => {
                    self.kernel.observer.outcome_unknown();
                    tracing::warn!(key = %commit.key, version = commit.version, %error, "append outcome unknown");
                }
            }
            match self.find_out(commit, deadline, &mut tries).await {
                Some(found) => return found,
                None if self.kernel.clock.monotonic() >= deadline => return Appended::Unknown,
                None => {}
            }
        }
    }

    async fn append_once(
        &self,
        commit: &Arc<Commit>,
        deadline: Duration,
    ) -> Result<AppendReceipt, AppendError> {
        let clock = &self.kernel.clock;
        let mut append = self.kernel.log.append(Arc::clone(commit));
        // Most answers come without a pause; only a pending one pays for the timer.
        if let std::task::Poll::Ready(outcome) = futures_util::poll!(&mut append) {
            return outcome;
        }
        let left = deadline.saturating_sub(clock.monotonic());
        match select(append, clock.sleep(left)).await {
            Either::Left((outcome, _)) => outcome,
            // Storage finishes what it has begun; here only the waiting ends.
            Either::Right(((), _)) => {
                Err(AppendError::OutcomeUnknown("no answer in time".to_owned()))
            }
        }
    }

    /// Looks at the version. None: nothing there, append again (R54).
    async fn find_out(
        &self,
        commit: &Commit,
        deadline: Duration,
        tries: &mut u32,
    ) -> Option<Appended> {
        loop {
            *tries += 1;
            self.kernel.clock.sleep(self.kernel.backoff(*tries)).await;
            match self.entry_at(commit).await {
                Ok(Some(entry)) if entry.command_id == commit.command_id => {
                    return Some(Appended::Yes(AppendReceipt {
                        position: entry.position,
                        committed_at: entry.committed_at,
                    }));
                }
                Ok(Some(_)) => return Some(Appended::Conflict),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(key = %commit.key, %error, "can't look at the version yet");
                }
            }
            if self.kernel.clock.monotonic() >= deadline {
                return Some(Appended::Unknown);
            }
        }
    }

    /// What the log holds at the version that a commit was meant for.
    async fn entry_at(&self, commit: &Commit) -> Result<Option<Commit>, StorageError> {
        let (key, version) = (&commit.key, commit.version);
        let read = self
            .kernel
            .log
            .read_aggregate(key, version - 1, version, 1)
            .await?;
        Ok(read.into_iter().next())
    }

    /// A unique key was hit: by our own commit, by another of this request, or by a faster command.
    async fn resolve_conflict(&mut self) -> Try {
        match self.find_request().await {
            Ok(Some(answer)) => answer,
            Ok(None) => Try::Again,
            Err(error) => {
                tracing::warn!(key = %self.command.key(), %error, "conflict can't be looked into");
                CommandError::OutcomeUnknown.into()
            }
        }
    }
}

fn refused(commit: &Commit, error: &AppendError) -> CommandError {
    match error {
        AppendError::Busy => CommandError::Busy {
            bound: Bound::LogWriter,
        },
        AppendError::Unavailable(reason) => {
            tracing::warn!(key = %commit.key, reason, "storage unavailable before the append");
            CommandError::StorageUnavailable
        }
        other => {
            tracing::error!(key = %commit.key, version = commit.version, error = %other, "append refused");
            CommandError::Internal
        }
    }
}
