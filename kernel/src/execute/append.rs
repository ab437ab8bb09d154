//! The append, and finding out what became of it (R52, R54).

use std::future::{Future, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::poll;

use super::load::note_commit;
use super::{Executed, Knowledge, Loaded, Run, Try};
use crate::commit::{Commit, StateView};
use crate::error::{Bound, CommandError};
use crate::id::Version;
use crate::ports::{AppendError, AppendReceipt, Probe};
use crate::recent::{RequestRecord, WRITTEN_EVERY};
use crate::registry::{Decided, ErasedState};

/// What became of an append.
enum Appended {
    /// The log has taken it.
    Taken(AppendReceipt),
    /// It was in the log when that was looked at: this is what the log holds of it (R54).
    Found(Box<Commit>),
    /// Another command has committed its request, and the aggregate's newest version is this.
    Known(Box<Commit>, Version),
    /// Another commit has its version.
    Conflict,
    /// Nothing was sent to storage.
    NotSent(CommandError),
    /// Storage refuses it, and always will.
    Refused,
    /// Not known, after all the time there is (R54).
    Unknown,
}

impl Run<'_> {
    /// Appends what was decided, and takes the state after it as the newest.
    pub(super) async fn commit(
        &mut self,
        loaded: Box<Loaded>,
        known: Knowledge,
        mut decided: Decided,
    ) -> Try {
        let commit = Arc::new(self.build_commit(&loaded, &mut decided));
        let (bytes, limit) = (commit.entry_bytes(), self.kernel.limits.entry_bytes_max);
        if bytes > limit {
            let too_large = Executed::Failed(CommandError::EventsTooLarge { bytes, limit });
            return Box::pin(self.confirm(loaded, known, too_large)).await;
        }
        match self.append(&commit).await {
            Appended::Taken(receipt) => self.committed(loaded, decided.state, commit, receipt),
            Appended::Found(entry) => self.found(*loaded, *entry),
            Appended::Known(entry, newest) => self.answer_found(loaded, newest, &entry),
            Appended::Conflict => Try::Again,
            Appended::NotSent(error) => {
                self.lane.cached = Some(loaded);
                error.into()
            }
            Appended::Refused => CommandError::Internal.into(),
            Appended::Unknown => CommandError::OutcomeUnknown.into(),
        }
    }

    fn committed(
        &mut self,
        mut next: Box<Loaded>,
        state: ErasedState,
        mut commit: Arc<Commit>,
        receipt: AppendReceipt,
    ) -> Try {
        // The log has let go of it in most cases, so that nothing is copied.
        let own = Arc::make_mut(&mut commit);
        own.position = receipt.position;
        own.committed_at = receipt.committed_at;
        next.version = commit.version;
        next.position = commit.position;
        next.state = state;
        let facts = Arc::make_mut(&mut next.facts);
        let noted = note_commit(facts, self.command.aggregate.spec.owner, &commit);
        next.recent.remember_commit(&commit);
        let answer = self.settle(next, commit);
        if let Err(fault) = noted {
            // Our own event, just written, can't be read back: the next command loads it, and says so.
            tracing::error!(key = %self.command.key(), %fault, "a built-in event can't be read");
            self.lane.cached = None;
        }
        answer
    }

    /// Our commit, as the log holds it. Its events are what counts: whoever ran this very command
    /// before may have decided others.
    fn found(&mut self, loaded: Loaded, entry: Commit) -> Try {
        let record = Box::new(RequestRecord::from(&entry));
        let key = entry.key.clone();
        if key == *self.command.key() && entry.version == loaded.version + 1 {
            match loaded.apply(&self.command.aggregate, &entry) {
                Ok(next) => return self.settle(Box::new(next), Arc::new(entry)),
                Err(error) => tracing::error!(%error, "our own commit can't be applied"),
            }
        }
        Try::Answer(Executed::Known {
            record,
            key,
            duplicate: false,
        })
    }

    /// Keeps the state after a commit, and answers with it. From here on nothing can fail (R55).
    fn settle(&mut self, next: Box<Loaded>, commit: Arc<Commit>) -> Try {
        let recent_requests = commit
            .version
            .is_multiple_of(WRITTEN_EVERY)
            .then(|| Arc::from(next.recent.to_json()));
        let view = StateView {
            commit,
            state: Arc::clone(&next.state),
            facts: Arc::clone(&next.facts),
            recent_requests,
        };
        self.lane.cached = Some(next);
        Try::Answer(Executed::Committed(view))
    }

    /// Tries the append until its outcome is known: the same events again, never a new decision.
    async fn append(&mut self, commit: &Arc<Commit>) -> Appended {
        let kernel = self.kernel;
        let mut call = kernel.log.append(Arc::clone(commit));
        // An answer that comes without a pause costs no look at the clock and no timer.
        let first = match poll!(&mut call) {
            Poll::Ready(Ok(receipt)) => return Appended::Taken(receipt),
            Poll::Ready(Err(error)) => Either::Right(ready(Err(error))),
            Poll::Pending => Either::Left(call),
        };
        Box::pin(self.append_until_known(commit, first)).await
    }

    async fn append_until_known(
        &mut self,
        commit: &Arc<Commit>,
        first: impl Future<Output = Result<AppendReceipt, AppendError>> + Unpin,
    ) -> Appended {
        let deadline = self.kernel.clock.monotonic() + self.kernel.limits.append_timeout;
        let mut tries = 0;
        let mut answer = self.answer_by(deadline, first).await;
        loop {
            let error = match answer {
                Ok(receipt) => return Appended::Taken(receipt),
                Err(error) => error,
            };
            if let (0, Some(refusal)) = (tries, not_sent(commit, &error)) {
                return Appended::NotSent(refusal);
            }
            self.append_tried = true;
            if !is_verdict(&error) {
                self.kernel.observer.outcome_unknown();
                tracing::warn!(key = %commit.key, version = commit.version, %error, "append outcome unknown");
                self.pause(&mut tries).await;
            }
            let Some(found) = self.look(commit, deadline, &mut tries).await else {
                return Appended::Unknown;
            };
            if let Some(outcome) = judge(commit, found, &error) {
                return outcome;
            }
            if self.kernel.clock.monotonic() >= deadline {
                return Appended::Unknown;
            }
            let again = self.kernel.log.append(Arc::clone(commit));
            answer = self.answer_by(deadline, again).await;
        }
    }

    async fn answer_by(
        &self,
        deadline: Duration,
        append: impl Future<Output = Result<AppendReceipt, AppendError>> + Unpin,
    ) -> Result<AppendReceipt, AppendError> {
        // Storage finishes what it has begun; here only the waiting ends.
        let unanswered = || Err(AppendError::OutcomeUnknown("no answer in time".to_owned()));
        self.within(deadline, append)
            .await
            .unwrap_or_else(unanswered)
    }

    /// Looks for the request and the version of a commit, again until storage answers; none when
    /// the time is over.
    async fn look(&self, commit: &Commit, deadline: Duration, tries: &mut u32) -> Option<Probe> {
        loop {
            let probe = self
                .kernel
                .history
                .probe(&commit.key, Some(&commit.request_id));
            match self.within(deadline, probe).await? {
                Ok(probe) => return Some(probe),
                Err(error) => {
                    tracing::warn!(key = %commit.key, %error, "can't look for the commit yet");
                }
            }
            if self.kernel.clock.monotonic() >= deadline {
                return None;
            }
            self.pause(tries).await;
        }
    }

    async fn pause(&self, tries: &mut u32) {
        *tries += 1;
        self.kernel.clock.sleep(self.kernel.backoff(*tries)).await;
    }

    /// What a call to storage answers, if it does so by the deadline.
    async fn within<T>(
        &self,
        deadline: Duration,
        mut call: impl Future<Output = T> + Unpin,
    ) -> Option<T> {
        // Most answers come without a pause; only a pending one pays for the timer.
        if let Poll::Ready(answer) = poll!(&mut call) {
            return Some(answer);
        }
        let clock = &self.kernel.clock;
        let left = deadline.saturating_sub(clock.monotonic());
        match select(call, clock.sleep(left)).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(((), _)) => None,
        }
    }
}

/// Whether storage has judged the entry itself, so that nothing is under way any more.
fn is_verdict(error: &AppendError) -> bool {
    matches!(
        error,
        AppendError::VersionConflict | AppendError::DuplicateRequest | AppendError::Refused(_)
    )
}

/// What the look after a failed append means; none where the same events have to be appended
/// again. The request comes first: with it our own commit is found whatever key was hit (R54).
fn judge(commit: &Commit, found: Probe, error: &AppendError) -> Option<Appended> {
    match found.request {
        Some(entry) if entry.command_id == commit.command_id => {
            return Some(Appended::Found(Box::new(entry)));
        }
        Some(entry) => return Some(Appended::Known(Box::new(entry), found.newest_version)),
        None if found.newest_version >= commit.version => return Some(Appended::Conflict),
        None => {}
    }
    match error {
        AppendError::VersionConflict | AppendError::DuplicateRequest => Some(Appended::Conflict),
        AppendError::Refused(reason) => {
            tracing::error!(key = %commit.key, version = commit.version, reason, "append refused");
            Some(Appended::Refused)
        }
        AppendError::OutcomeUnknown(_) | AppendError::Unavailable(_) | AppendError::Busy => None,
    }
}

/// The answer where nothing was sent to storage.
fn not_sent(commit: &Commit, error: &AppendError) -> Option<CommandError> {
    match error {
        AppendError::Busy => Some(CommandError::Busy {
            bound: Bound::LogWriter,
        }),
        AppendError::Unavailable(reason) => {
            tracing::warn!(key = %commit.key, reason, "storage unavailable before the append");
            Some(CommandError::StorageUnavailable)
        }
        _ => None,
    }
}
