//! SagaRunner: runs one saga over one partition (R83).
//!
//! Owns: the saga's checkpoint in its partition.
//! Receives: nothing; it follows its partition's feed.
//! Sends: the saga's commands through admission; SAGA_HANDLED signals to waits.
//! Bounded by: one command at a time.
//! Ends when: the system drains, after the command in flight.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use wow_kernel::commit::{Commit, RecordedEvent, StateView};
use wow_kernel::error::CommandError;
use wow_kernel::execute::LoadError;
use wow_kernel::id::PartitionNo;
use wow_kernel::model::{EventFault, RejectedCommand, SagaCommand};
use wow_kernel::ports::{Checkpoint, StorageError};
use wow_kernel::registry::SagaDefinition;
use wow_kernel::saga::{SagaIndex, submission};
use wow_kernel::wait::{FunctionInfo, Stage};

use super::RunnerGuard;
use super::follow::{Entry, Follower};
use super::progress::{Progress, Superseded};
use super::snapshot::sleep_until_due;
use crate::handle::Handle;
use crate::shared::{Phase, Shared};
use crate::stages;

/// How many entries are taken at a time.
const PAGE: usize = 64;

/// The first pause after a failure; it doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(50);

/// The longest pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// The actor.
#[derive(Debug)]
pub(crate) struct SagaRunner {
    work: Option<Work>,
}

#[derive(Debug)]
struct Work {
    shared: Arc<Shared>,
    handle: Handle,
    saga: Arc<SagaDefinition>,
    follower: Follower,
    progress: Progress,
    function: Arc<FunctionInfo>,
    _guard: RunnerGuard,
}

/// Why an entry isn't handled yet. Its checkpoint stays before it.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Event(#[from] EventFault),
    #[error("the saga panicked")]
    Panicked,
    #[error("a command has no final outcome yet: {0}")]
    Unfinished(CommandError),
    #[error("aggregate type {0} is unknown here")]
    TypeUnknown(String),
}

impl SagaRunner {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        saga: &Arc<SagaDefinition>,
        partition: PartitionNo,
        stored: Option<Checkpoint>,
    ) -> Self {
        let work = Work {
            shared: Arc::clone(shared),
            handle: Handle::of(Arc::clone(shared)),
            saga: Arc::clone(saga),
            follower: Follower {
                shared: Arc::clone(shared),
                partition,
            },
            progress: Progress::new(Arc::clone(shared), saga.name, partition, stored),
            function: Arc::new(stages::saga_function(&shared.registry, saga)),
            _guard: shared.runners.enter(),
        };
        Self { work: Some(work) }
    }
}

impl Actor for SagaRunner {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        if let Some(work) = self.work.take() {
            context.spawn(
                work.run()
                    .into_actor(self)
                    .map(|(), _runner, context| context.stop()),
            );
        }
    }
}

impl Work {
    async fn run(mut self) {
        if self.follow().await.is_ok() {
            let _ = self.progress.save().await;
        }
    }

    async fn follow(&mut self) -> Result<(), Superseded> {
        loop {
            let shared = Arc::clone(&self.shared);
            let due = self.progress.due_in().unwrap_or(Duration::MAX);
            let page = tokio::select! {
                page = self.follower.next(self.progress.position(), PAGE) => page,
                () = shared.in_phase(Phase::Draining) => return Ok(()),
                () = sleep_until_due(&shared, due) => {
                    self.progress.save_if_due().await?;
                    continue;
                }
            };
            match page {
                Ok(page) => {
                    for entry in &page {
                        if !self.handle_until_done(entry).await {
                            return Ok(());
                        }
                        self.progress.advance(entry.commit().position);
                        self.progress.save_if_due().await?;
                    }
                }
                Err(error) => {
                    if !self.pause(0, &error.into()).await {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Handles an entry, again and again until each of its commands has a final outcome. `false`
    /// when the system drains before that.
    async fn handle_until_done(&self, entry: &Entry) -> bool {
        let commit = entry.commit();
        if commit.key.aggregate_type != self.saga.aggregate_type {
            return true;
        }
        let mut failures = 0;
        loop {
            if self.shared.is_in_phase(Phase::Draining) {
                return false;
            }
            match self.handle_entry(entry).await {
                Ok(()) => {
                    let handled = std::iter::once(&**commit);
                    self.shared
                        .signal(Stage::SagaHandled, &self.function, handled);
                    return true;
                }
                Err(error) => {
                    if !self.pause(failures, &error).await {
                        return false;
                    }
                    failures += 1;
                }
            }
        }
    }

    /// Waits before trying again; `false` when the system drains meanwhile.
    async fn pause(&self, failures: u32, error: &EntryError) -> bool {
        let partition = self.follower.partition;
        tracing::warn!(subscription = self.saga.name, partition_id = %partition, %error, "saga tries again");
        self.shared.metrics.subscription_failed(self.saga.name);
        let pause = RETRY_MIN * 2_u32.pow(failures.min(8));
        tokio::select! {
            () = self.shared.clock.sleep(pause.min(RETRY_MAX)) => true,
            () = self.shared.in_phase(Phase::Draining) => false,
        }
    }

    async fn handle_entry(&self, entry: &Entry) -> Result<(), EntryError> {
        let view = match entry {
            Entry::View(view) => view.clone(),
            Entry::Stored(commit) => self.rebuild(commit).await?,
        };
        let mut index = 0;
        for event in view
            .commit
            .events
            .iter()
            .filter(|event| self.saga.takes(event))
        {
            for command in guarded(|| self.saga.handle(event, &view))? {
                self.send(event, &view, command, index).await?;
                index += 1;
            }
        }
        Ok(())
    }

    /// The state after an entry that no lane handed over.
    async fn rebuild(&self, commit: &Arc<Commit>) -> Result<StateView, EntryError> {
        let (key, version) = (&commit.key, commit.version);
        let definition = self
            .shared
            .registry
            .aggregate(&key.aggregate_type)
            .ok_or_else(|| EntryError::TypeUnknown(key.aggregate_type.to_string()))?;
        let loaded = self
            .shared
            .kernel
            .loader
            .load_up_to(definition, key, version)
            .await?;
        Ok(StateView {
            commit: Arc::clone(commit),
            state: loaded.state,
            facts: loaded.facts,
            recent_requests: None,
        })
    }

    /// Sends one command; a refusal for good is put to the saga.
    async fn send(
        &self,
        event: &RecordedEvent,
        view: &StateView,
        command: SagaCommand,
        index: usize,
    ) -> Result<(), EntryError> {
        let commit = &view.commit;
        let Err(error) = self
            .submit(commit, command, SagaIndex::Command(index))
            .await?
        else {
            return Ok(());
        };
        let rejected = RejectedCommand {
            index,
            error: &error,
        };
        let Some(answers) = guarded(|| self.saga.on_rejected(event, view, &rejected))? else {
            self.report(
                commit,
                &error,
                "a saga's command was refused, and the saga has no answer",
            );
            return Ok(());
        };
        for (answer, command) in answers.into_iter().enumerate() {
            let index = SagaIndex::Answer {
                refused: index,
                answer,
            };
            if let Err(error) = self.submit(commit, command, index).await? {
                self.report(
                    commit,
                    &error,
                    "a saga's answer to a refusal was refused itself",
                );
            }
        }
        Ok(())
    }

    fn report(&self, commit: &Commit, error: &CommandError, what: &'static str) {
        self.shared.metrics.saga_rejection(self.saga.name);
        tracing::error!(
            subscription = self.saga.name,
            partition_id = %commit.partition,
            position = commit.position,
            code = %error.code(),
            %error,
            "{what}"
        );
    }

    /// Sends a command once: done, refused for good, or not finished.
    async fn submit(
        &self,
        commit: &Commit,
        command: SagaCommand,
        index: SagaIndex,
    ) -> Result<Result<(), CommandError>, EntryError> {
        let registry = &self.shared.registry;
        let submission = match submission(registry, &self.saga, commit, command, index) {
            Ok(submission) => submission,
            Err(error) => return Ok(Err(error)),
        };
        let error = match self.handle.submit(submission).await {
            Ok(result) => match result.error {
                None => return Ok(Ok(())),
                Some(error) => error,
            },
            Err(error) => error,
        };
        // A failure of this system's own is not the domain's "no" either.
        let is_final = !error.is_retryable()
            && !matches!(error, CommandError::Panicked | CommandError::Internal);
        if is_final {
            Ok(Err(error))
        } else {
            Err(EntryError::Unfinished(error))
        }
    }
}

/// Runs the user's saga; its panic is an error that is tried again.
fn guarded<T>(run: impl FnOnce() -> Result<T, EventFault>) -> Result<T, EntryError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(handled) => Ok(handled?),
        Err(_panic) => Err(EntryError::Panicked),
    }
}
