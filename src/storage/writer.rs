//! The log writer: group commit.
//!
//! While one batch commits, the next gathers: a batch is whatever queued meanwhile, so no timer
//! ever delays an append, and the busier the node, the larger its batches. One transaction holds
//! all of a batch: log entries, and the snapshots and checkpoints that came in between, for one
//! sync to disk. A conflict never fails a neighbour: the batch is rolled back, one query says
//! whose keys are taken, these are answered, and the rest goes in as one batch again.
//!
//! The writer is a task of its own. Callers hold a reply channel and nothing else, so nobody
//! who goes away can cancel a transaction half way (field report 25).

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::id::AggregateKey;
use wow_kernel::ports::{AppendError, AppendReceipt, Checkpoint, StorageError};

use super::batch::{Append, Batch, Entry, Move, Pending, Save, Work, Written};
use super::error::{BatchFault, UniqueKey};
use super::observer::{BatchOutcome, StorageObserver, WrittenBatch};
use super::queue::take;
use super::settings::{BatchLimits, QueueLimits};

/// What a database does for a log writer. Each writer has one of its own, with a connection of
/// its own.
#[async_trait]
pub(super) trait BatchStore: Send + 'static {
    /// Writes a batch in one transaction: raises the heads of its partitions by exactly the rows
    /// inserted (R80), and writes all of it, or nothing.
    ///
    /// # Errors
    /// [`BatchFault`]; only [`BatchFault::Unknown`] may have written anything.
    async fn execute(&mut self, batch: &Batch<'_>) -> Result<Written, BatchFault>;

    /// Which of these entries meet a row that is there already; the request id counts before
    /// the version (R54).
    ///
    /// # Errors
    /// [`StorageError`].
    async fn taken(&mut self, entries: &[&Entry]) -> Result<Vec<Option<UniqueKey>>, StorageError>;

    /// Forgets a connection that isn't to be trusted; the next call makes a new one.
    async fn reset(&mut self);

    /// Ends the connection.
    async fn close(&mut self);
}

#[async_trait]
impl BatchStore for Box<dyn BatchStore> {
    async fn execute(&mut self, batch: &Batch<'_>) -> Result<Written, BatchFault> {
        (**self).execute(batch).await
    }

    async fn taken(&mut self, entries: &[&Entry]) -> Result<Vec<Option<UniqueKey>>, StorageError> {
        (**self).taken(entries).await
    }

    async fn reset(&mut self) {
        (**self).reset().await;
    }

    async fn close(&mut self) {
        (**self).close().await;
    }
}

/// Where appends and saves are handed to a log writer.
#[derive(Debug, Clone)]
pub(super) struct WriterHandle {
    queue: mpsc::Sender<Work>,
    bytes: Arc<Semaphore>,
    bytes_max: u32,
}

impl WriterHandle {
    /// Makes a handle, and the queue for its writer.
    pub(super) fn new(limits: QueueLimits) -> (Self, mpsc::Receiver<Work>) {
        let (queue, work) = mpsc::channel(limits.entries);
        let bytes_max = u32::try_from(limits.bytes).unwrap_or(u32::MAX);
        let bytes = Arc::new(Semaphore::new(bytes_max as usize));
        (
            Self {
                queue,
                bytes,
                bytes_max,
            },
            work,
        )
    }

    /// Appends a commit; a full queue refuses at once.
    ///
    /// # Errors
    /// [`AppendError`].
    pub(super) async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        let entry = Entry::new(commit)?;
        // An entry larger than the whole queue still gets its turn, alone.
        let bytes = u32::try_from(entry.bytes())
            .unwrap_or(u32::MAX)
            .min(self.bytes_max);
        let Ok(room) = Arc::clone(&self.bytes).try_acquire_many_owned(bytes) else {
            return Err(AppendError::Busy);
        };
        let (reply, answer) = oneshot::channel();
        self.queue
            .try_send(Work::Append(Append {
                entry,
                reply,
                _room: room,
            }))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => AppendError::Busy,
                mpsc::error::TrySendError::Closed(_) => AppendError::Unavailable(closed()),
            })?;
        // A writer that ends without an answer may have written.
        answer.await.unwrap_or_else(|_| {
            Err(AppendError::OutcomeUnknown(
                "the log writer gave no answer".to_owned(),
            ))
        })
    }

    /// Saves snapshots, all or none; waits for room.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) async fn save(&self, snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.submit(Work::Save(Save { snapshots, reply }), answer)
            .await
    }

    /// Moves a checkpoint; waits for room.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) async fn move_to(&self, checkpoint: Checkpoint) -> Result<bool, StorageError> {
        let (reply, answer) = oneshot::channel();
        self.submit(Work::Move(Move { checkpoint, reply }), answer)
            .await
    }

    async fn submit<T>(
        &self,
        work: Work,
        answer: oneshot::Receiver<Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        let sent = self.queue.send(work).await;
        sent.map_err(|_| StorageError::Unavailable(closed()))?;
        answer.await.unwrap_or_else(|_| {
            Err(StorageError::Unavailable(
                "the log writer gave no answer".to_owned(),
            ))
        })
    }
}

fn closed() -> String {
    "storage is closed".to_owned()
}

/// The task.
pub(super) struct Writer<S> {
    queue: mpsc::Receiver<Work>,
    /// Taken from the queue, not yet in a batch: what couldn't share the last one.
    waiting: VecDeque<Work>,
    store: S,
    limits: BatchLimits,
    observer: Arc<dyn StorageObserver>,
}

impl<S: BatchStore> Writer<S> {
    /// A writer over a queue and a database.
    pub(super) fn new(
        queue: mpsc::Receiver<Work>,
        store: S,
        limits: BatchLimits,
        observer: Arc<dyn StorageObserver>,
    ) -> Self {
        Self {
            queue,
            waiting: VecDeque::new(),
            store,
            limits,
            observer,
        }
    }

    /// Writes until it is told to stop or nobody can hand it work any more; what is queued by
    /// then is still written. Gives the database back, for its owner to close.
    pub(super) async fn run(mut self, stop: CancellationToken) -> S {
        while let Some(pending) = self.gather(&stop).await {
            // A panic would be a fault of ours. Its batch is answered as unknown, for its reply
            // channels are dropped; the node goes on with a new connection.
            let written = AssertUnwindSafe(self.write(pending)).catch_unwind().await;
            if written.is_err() {
                tracing::error!("the log writer panicked; the outcome of its batch is unknown");
                self.store.reset().await;
            }
        }
        self.store
    }

    /// The next batch: waits for work, then takes what is there.
    async fn gather(&mut self, stop: &CancellationToken) -> Option<Pending> {
        if self.waiting.is_empty() {
            let taken = take(&mut self.queue, self.limits.rows, stop).await;
            if taken.is_empty() {
                return None;
            }
            self.waiting.extend(taken);
        }
        while self.waiting.len() < self.limits.rows
            && let Ok(work) = self.queue.try_recv()
        {
            self.waiting.push_back(work);
        }
        // Strictly in order of arrival: what is behind a piece of work that can't share this batch
        // may have been decided on it.
        let mut pending = Pending::default();
        while let Some(work) = self
            .waiting
            .pop_front_if(|work| pending.admits(work, &self.limits))
        {
            pending.push(work);
        }
        self.observer
            .writer_queue(self.waiting.len() + self.queue.len());
        Some(pending)
    }

    async fn write(&mut self, mut pending: Pending) {
        match self.execute(&pending).await {
            Ok(written) => return answer(pending, &written),
            Err(BatchFault::Taken(_)) => {}
            Err(BatchFault::Refused(_)) => return self.write_one_by_one(pending).await,
            Err(fault) => return fail(pending, &fault),
        }
        if let Err(fault) = self.answer_taken(&mut pending).await {
            return fail(pending, &fault);
        }
        if pending.is_empty() {
            return;
        }
        match self.execute(&pending).await {
            Ok(written) => answer(pending, &written),
            // Somebody else, another node, was faster once more.
            Err(BatchFault::Taken(_) | BatchFault::Refused(_)) => {
                self.write_one_by_one(pending).await;
            }
            Err(fault) => fail(pending, &fault),
        }
    }

    /// Writes each piece in a transaction of its own, so that none can fail another.
    async fn write_one_by_one(&mut self, pending: Pending) {
        let mut units = pending.into_units().into_iter();
        while let Some(mut unit) = units.next() {
            let fault = match self.execute(&unit).await {
                Ok(written) => {
                    answer(unit, &written);
                    continue;
                }
                Err(fault) => fault,
            };
            match &fault {
                BatchFault::Taken(_) => {
                    if let Err(unavailable) = self.answer_taken(&mut unit).await {
                        fail(unit, &unavailable);
                    } else {
                        // What isn't answered was taken by the key that the database named.
                        fail(unit, &fault);
                    }
                }
                BatchFault::Refused(reason) => {
                    tracing::error!(reason, "the database refuses a row");
                    fail(unit, &fault);
                }
                BatchFault::Unavailable(_) | BatchFault::Unknown(_) => {
                    fail(unit, &fault);
                    // Nothing of these was sent, and each would wait for the same time-out.
                    let unsent = BatchFault::Unavailable("the database is away".to_owned());
                    units.by_ref().for_each(|unit| fail(unit, &unsent));
                }
            }
        }
    }

    async fn execute(&mut self, pending: &Pending) -> Result<Written, BatchFault> {
        let batch = pending.batch();
        let started = Instant::now();
        let result = self.store.execute(&batch).await;
        let outcome = match &result {
            Ok(_) => BatchOutcome::Committed,
            Err(BatchFault::Taken(_)) => BatchOutcome::Conflict,
            Err(BatchFault::Refused(_)) => BatchOutcome::Refused,
            Err(BatchFault::Unavailable(_)) => BatchOutcome::Unavailable,
            Err(BatchFault::Unknown(_)) => BatchOutcome::Unknown,
        };
        self.observer.batch_written(&WrittenBatch {
            entries: batch.entries.len(),
            snapshots: batch.snapshots.len(),
            checkpoints: batch.checkpoints.len(),
            elapsed: started.elapsed(),
            outcome,
        });
        if let Err(fault @ (BatchFault::Unavailable(reason) | BatchFault::Unknown(reason))) =
            &result
        {
            tracing::warn!(
                reason,
                unknown = matches!(fault, BatchFault::Unknown(_)),
                "batch failed"
            );
            self.store.reset().await;
        }
        result
    }

    /// Looks up which entries are taken, answers them, and with each the other entries of its
    /// aggregate: those were decided on it.
    async fn answer_taken(&mut self, pending: &mut Pending) -> Result<(), BatchFault> {
        let entries: Vec<&Entry> = pending.appends.iter().map(|append| &append.entry).collect();
        let taken = match self.store.taken(&entries).await {
            Ok(taken) => taken,
            Err(error) => {
                self.store.reset().await;
                return Err(BatchFault::Unavailable(error.to_string()));
            }
        };
        let fallen: HashSet<AggregateKey> = entries
            .iter()
            .zip(&taken)
            .filter(|(_, taken)| taken.is_some())
            .map(|(entry, _)| entry.commit.key.clone())
            .collect();
        let appends = std::mem::take(&mut pending.appends);
        for (append, taken) in appends.into_iter().zip(taken) {
            if fallen.contains(&append.entry.commit.key) {
                let key = taken.unwrap_or(UniqueKey::Version);
                let _ = append
                    .reply
                    .send(Err(BatchFault::Taken(key).to_append_error()));
            } else {
                pending.appends.push(append);
            }
        }
        Ok(())
    }
}

/// Answers all of a batch that was written. Callers that went away are none of its concern.
fn answer(pending: Pending, written: &Written) {
    for (append, receipt) in pending.appends.into_iter().zip(&written.receipts) {
        let _ = append.reply.send(Ok(*receipt));
    }
    for save in pending.saves {
        let _ = save.reply.send(Ok(()));
    }
    for (moved, done) in pending.moves.into_iter().zip(&written.moved) {
        let _ = moved.reply.send(Ok(*done));
    }
}

/// Answers all of a batch that was not, or may not have been.
fn fail(pending: Pending, fault: &BatchFault) {
    for append in pending.appends {
        let _ = append.reply.send(Err(fault.to_append_error()));
    }
    for save in pending.saves {
        let _ = save.reply.send(Err(fault.to_storage_error()));
    }
    for moved in pending.moves {
        let _ = moved.reply.send(Err(fault.to_storage_error()));
    }
}

#[cfg(test)]
mod tests;
