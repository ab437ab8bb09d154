//! Whether the storage under the node works, as far as readiness goes.
//!
//! Nothing is asked of the database for it: the node reads the heads of the log all the time and
//! writes whenever there is something to write, so the last of each tells. Only a file that was
//! taken away is looked for, once a second, because nothing else would notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use wow_kernel::ports::Clock;

use super::metrics::StorageMetrics;
use crate::storage::{BatchOutcome, DatabaseFile, ReadBatch, StorageObserver, WrittenBatch};

/// How long a write that failed speaks against the node. A node that isn't ready gets no commands,
/// so after this it is believed until the next write tells.
const DOUBT: Duration = Duration::from_secs(10);

/// How often the file is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long looking may take: a file system that hangs is no better than a missing file.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// What storage was last seen to do.
pub(super) struct StorageHealth {
    clock: Arc<dyn Clock>,
    /// Whether the last read got no answer.
    reads_fail: AtomicBool,
    /// When the last write failed; none where it didn't.
    write_failed: Mutex<Option<Duration>>,
    /// Whether the database's file isn't where it was opened.
    file_is_gone: AtomicBool,
}

impl StorageHealth {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            reads_fail: AtomicBool::new(false),
            write_failed: Mutex::new(None),
            file_is_gone: AtomicBool::new(false),
        }
    }

    /// Whether commands that come now are likely to find storage working.
    pub(super) fn is_usable(&self) -> bool {
        let failed = *self.write_failed.lock();
        let is_doubtful =
            failed.is_some_and(|at| self.clock.monotonic().saturating_sub(at) < DOUBT);
        !is_doubtful
            && !self.reads_fail.load(Ordering::Acquire)
            && !self.file_is_gone.load(Ordering::Acquire)
    }

    fn note_write(&self, outcome: BatchOutcome) {
        let failed = match outcome {
            // A refusal of what was written says that the database works.
            BatchOutcome::Committed | BatchOutcome::Conflict | BatchOutcome::Refused => None,
            BatchOutcome::Unavailable | BatchOutcome::Unknown => Some(self.clock.monotonic()),
        };
        *self.write_failed.lock() = failed;
    }

    fn note_file(&self, is_in_place: bool) {
        let was_gone = self.file_is_gone.swap(!is_in_place, Ordering::AcqRel);
        match (was_gone, is_in_place) {
            (false, false) => tracing::error!(
                "the database's file is no longer where it was opened: what is written now, \
                 nobody will read; put it back, or stop this node"
            ),
            (true, true) => tracing::info!("the database's file is back"),
            _ => {}
        }
    }

    /// Looks for the database's file, again and again; ends with the runtime it runs on.
    pub(super) async fn watch(self: Arc<Self>, file: DatabaseFile) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let file = file.clone();
            let mut looking = tokio::task::spawn_blocking(move || file.is_in_place());
            let found = match tokio::time::timeout(LOOK_TIMEOUT, &mut looking).await {
                Ok(found) => found,
                Err(_hangs) => {
                    self.note_file(false);
                    // One look at a time, so that a file system that hangs takes one thread.
                    looking.await
                }
            };
            self.note_file(found.unwrap_or(false));
        }
    }
}

/// Tells metrics and health what storage does.
pub(super) struct Observed {
    pub(super) metrics: StorageMetrics,
    pub(super) health: Arc<StorageHealth>,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

impl StorageObserver for Observed {
    fn batch_written(&self, batch: &WrittenBatch) {
        self.health.note_write(batch.outcome);
        self.metrics.batch_written(batch);
    }

    fn writer_queue(&self, waiting: usize) {
        self.metrics.writer_queue(waiting);
    }

    fn batch_read(&self, read: &ReadBatch) {
        self.health
            .reads_fail
            .store(!read.answered, Ordering::Release);
        self.metrics.batch_read(read);
    }

    fn statement(&self, elapsed: Duration) {
        self.metrics.statement(elapsed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use wow_kernel::memory::ManualClock;

    use super::*;
    use crate::storage::ReadKind;

    struct Fixture {
        clock: ManualClock,
        health: Arc<StorageHealth>,
        observed: Observed,
    }

    fn fixture() -> Fixture {
        let clock = ManualClock::new();
        let health = Arc::new(StorageHealth::new(Arc::new(clock.clone())));
        let metrics = StorageMetrics::register(&prometheus::Registry::new()).unwrap();
        let observed = Observed {
            metrics,
            health: Arc::clone(&health),
        };
        Fixture {
            clock,
            health,
            observed,
        }
    }

    fn written(outcome: BatchOutcome) -> WrittenBatch {
        WrittenBatch {
            entries: 1,
            snapshots: 0,
            checkpoints: 0,
            elapsed: Duration::ZERO,
            outcome,
        }
    }

    fn read(answered: bool) -> ReadBatch {
        ReadBatch {
            kind: ReadKind::Head,
            questions: 1,
            elapsed: Duration::ZERO,
            answered,
        }
    }

    #[test]
    fn a_write_that_fails_speaks_against_the_node_until_one_succeeds_or_time_has_passed() {
        let Fixture {
            clock,
            health,
            observed,
        } = fixture();
        assert!(health.is_usable());
        for failure in [BatchOutcome::Unavailable, BatchOutcome::Unknown] {
            for success in [
                BatchOutcome::Committed,
                BatchOutcome::Conflict,
                BatchOutcome::Refused,
            ] {
                observed.batch_written(&written(failure));
                assert!(!health.is_usable(), "{failure:?}");
                observed.batch_written(&written(success));
                assert!(health.is_usable(), "{success:?}");
            }
        }
        observed.batch_written(&written(BatchOutcome::Unavailable));
        clock.advance(DOUBT - Duration::from_millis(1));
        assert!(!health.is_usable());
        clock.advance(Duration::from_millis(1));
        assert!(health.is_usable());
    }

    #[test]
    fn a_read_without_an_answer_speaks_against_the_node_until_one_has_it() {
        let Fixture {
            health, observed, ..
        } = fixture();
        observed.batch_read(&read(false));
        assert!(!health.is_usable());
        observed.batch_read(&read(true));
        assert!(health.is_usable());
    }

    #[test]
    fn a_file_that_is_gone_speaks_against_the_node_until_it_is_back() {
        let health = fixture().health;
        health.note_file(false);
        assert!(!health.is_usable());
        health.note_file(true);
        assert!(health.is_usable());
    }
}
