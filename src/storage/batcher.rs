//! Reads: many lanes, one query (R42, R63).
//!
//! Each kind of question has one queue and one task. What queued while the last query ran is
//! answered by the next one; nobody waits for a timer. A question whose answer can't be read
//! fails alone.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wow_kernel::ports::StorageError;

use super::observer::{ReadBatch, ReadKind, StorageObserver};
use super::queue::take;

/// The answers of one query, one for each question; or why there are none at all.
pub(super) type Answers<A> = Result<Vec<Result<A, StorageError>>, StorageError>;

/// How a kind of question is batched.
#[derive(Debug, Clone)]
pub(super) struct ReadLimits {
    /// What is asked.
    pub(super) kind: ReadKind,
    /// Questions that one query answers at most.
    pub(super) batch: usize,
    /// How long one query may take.
    pub(super) timeout: Duration,
}

/// Questions that wait for the next query at most; more wait before the queue, and their number
/// is that of the node's commands in flight.
const QUEUE_LEN: usize = 1024;

struct Asked<Q, A> {
    question: Q,
    reply: oneshot::Sender<Result<A, StorageError>>,
}

/// Where questions of one kind are asked.
pub(super) struct Batcher<Q, A> {
    queue: mpsc::Sender<Asked<Q, A>>,
}

impl<Q: Send + 'static, A: Send + 'static> Batcher<Q, A> {
    /// Starts the task that answers with `ask`; it ends when told to stop, after what is queued
    /// by then.
    pub(super) fn spawn<F, Fut>(
        runtime: &Handle,
        limits: ReadLimits,
        observer: Arc<dyn StorageObserver>,
        stop: CancellationToken,
        ask: F,
    ) -> (Self, JoinHandle<()>)
    where
        F: Fn(Vec<Q>) -> Fut + Send + 'static,
        Fut: Future<Output = Answers<A>> + Send + 'static,
    {
        let (queue, asked) = mpsc::channel(QUEUE_LEN);
        let task = runtime.spawn(run(asked, limits, observer, stop, ask));
        (Self { queue }, task)
    }

    /// Asks one question; waits for room in the queue.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(super) async fn ask(&self, question: Q) -> Result<A, StorageError> {
        let (reply, answer) = oneshot::channel();
        if self.queue.send(Asked { question, reply }).await.is_err() {
            return Err(StorageError::Unavailable("storage is closed".to_owned()));
        }
        answer.await.unwrap_or_else(|_| {
            Err(StorageError::Unavailable(
                "the read gave no answer".to_owned(),
            ))
        })
    }
}

async fn run<Q, A, F, Fut>(
    mut queue: mpsc::Receiver<Asked<Q, A>>,
    limits: ReadLimits,
    observer: Arc<dyn StorageObserver>,
    stop: CancellationToken,
    ask: F,
) where
    F: Fn(Vec<Q>) -> Fut,
    Fut: Future<Output = Answers<A>>,
{
    loop {
        let mut asked = take(&mut queue, limits.batch, &stop).await;
        if asked.is_empty() {
            return;
        }
        // Nobody waits any more for an answer to these.
        asked.retain(|asked| !asked.reply.is_closed());
        if asked.is_empty() {
            continue;
        }
        let (questions, replies): (Vec<Q>, Vec<_>) = asked
            .into_iter()
            .map(|asked| (asked.question, asked.reply))
            .unzip();
        let started = Instant::now();
        let answers = answer(&limits, ask(questions)).await;
        observer.batch_read(&ReadBatch {
            kind: limits.kind,
            questions: replies.len(),
            elapsed: started.elapsed(),
            answered: answers.is_ok(),
        });
        match answers {
            Ok(answers) => {
                for (reply, answer) in replies.into_iter().zip(answers) {
                    let _ = reply.send(answer);
                }
            }
            Err(error) => {
                tracing::warn!(%error, kind = limits.kind.as_str(), "read failed");
                for reply in replies {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

/// Runs one query, within its time. A read holds no transaction, so giving it up leaves nothing
/// behind.
async fn answer<A>(limits: &ReadLimits, query: impl Future<Output = Answers<A>>) -> Answers<A> {
    match tokio::time::timeout(limits.timeout, AssertUnwindSafe(query).catch_unwind()).await {
        Ok(Ok(answers)) => answers,
        Ok(Err(_)) => Err(StorageError::Unavailable("the read panicked".to_owned())),
        Err(_) => {
            let reason = format!("no answer within {:?}", limits.timeout);
            Err(StorageError::Unavailable(reason))
        }
    }
}
