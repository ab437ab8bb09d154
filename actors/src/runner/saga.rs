//! SagaRunner: runs one saga over one partition (R83).
//!
//! Owns: the saga's checkpoint in its partition.
//! Receives: nothing; it follows its partition's feed.
//! Sends: the saga's commands through admission; SAGA_HANDLED signals to waits.
//! Bounded by: one command at a time.
//! Ends when: its partition is given up or the system drains, after the command in flight.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use wow_kernel::commit::{Commit, RecordedEvent, StateView};
use wow_kernel::error::CommandError;
use wow_kernel::execute::LoadError;
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
use crate::tenure::Tenure;
use crate::vital::Vital;

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
    tenure: Arc<Tenure>,
    handle: Handle,
    saga: Arc<SagaDefinition>,
    follower: Follower,
    progress: Progress,
    function: Arc<FunctionInfo>,
    // Before the guard, so that whoever sees the runner gone knows why.
    _vital: Vital,
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

impl EntryError {
    /// Whether trying again can't help before somebody has mended something.
    fn needs_mending(&self) -> bool {
        matches!(
            self,
            Self::Event(_)
                | Self::Load(LoadError::Event { .. } | LoadError::Panicked { .. })
                | Self::Load(LoadError::Gap { .. })
                | Self::Panicked
                | Self::TypeUnknown(_)
        )
    }
}

/// How far an entry has come, so that a try after a failure goes on from there. What was refused
/// for good stays refused: sent again it might be taken, after its answer was.
#[derive(Debug, Default)]
struct Settled {
    /// How many commands have their final outcome.
    commands: usize,
    /// Why the one after them was refused, while its answers are sent.
    refused: Option<CommandError>,
    /// How many of those have their final outcome.
    answers: usize,
    /// Whether any refusal was answered.
    any_answered: bool,
}

impl Settled {
    fn command(&mut self) {
        self.commands += 1;
        self.refused = None;
        self.answers = 0;
    }
}

impl SagaRunner {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        saga: &Arc<SagaDefinition>,
        tenure: &Arc<Tenure>,
        stored: Option<Checkpoint>,
    ) -> Self {
        let progress = Progress::new(shared, saga.name, tenure, stored);
        let work = Work {
            shared: Arc::clone(shared),
            tenure: Arc::clone(tenure),
            handle: Handle::of(Arc::clone(shared)),
            saga: Arc::clone(saga),
            follower: Follower::new(shared, tenure.partition, progress.position()),
            progress,
            function: Arc::new(stages::saga_function(&shared.registry, saga)),
            _vital: Vital::of_runner(shared, tenure, "saga runner"),
            _guard: RunnerGuard::enter(shared, tenure),
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
        let mut failures = 0;
        loop {
            let shared = Arc::clone(&self.shared);
            let due = self.progress.due_in().unwrap_or(Duration::MAX);
            let page = tokio::select! {
                biased;
                () = self.tenure.in_phase(Phase::Ended) => return Err(Superseded),
                () = self.tenure.in_phase(Phase::Draining) => return Ok(()),
                page = self.follower.next(self.progress.position(), PAGE) => page,
                () = sleep_until_due(&shared, due) => {
                    self.progress.save_if_due().await?;
                    continue;
                }
            };
            match page {
                Ok(page) => {
                    failures = 0;
                    for entry in &page {
                        let Some(settled) = self.handle_until_done(entry).await else {
                            return Ok(());
                        };
                        self.progress.advance(entry.commit().position);
                        if settled.any_answered {
                            // Handled again, the refused command might be taken: not to be left
                            // to the next time that it is due.
                            self.progress.save().await?;
                        }
                        self.progress.save_if_due().await?;
                    }
                }
                Err(error) => {
                    if !self.pause(failures, &error.into()).await {
                        return Ok(());
                    }
                    failures += 1;
                }
            }
        }
    }

    /// Handles an entry, again and again until each of its commands has a final outcome. None
    /// when the system drains before that.
    async fn handle_until_done(&self, entry: &Entry) -> Option<Settled> {
        let commit = entry.commit();
        let mut settled = Settled::default();
        if commit.key.aggregate_type != self.saga.aggregate_type {
            return Some(settled);
        }
        let mut failures = 0;
        loop {
            if self.tenure.is_in_phase(Phase::Draining) {
                return None;
            }
            let Err(error) = self.handle_entry(entry, &mut settled).await else {
                break;
            };
            if !self.pause(failures, &error).await {
                return None;
            }
            failures += 1;
        }
        let handled = std::iter::once(&**commit);
        self.shared
            .signal(Stage::SagaHandled, &self.function, None, handled);
        Some(settled)
    }

    /// Waits before trying again; `false` when the system drains meanwhile.
    async fn pause(&self, failures: u32, error: &EntryError) -> bool {
        let partition = self.follower.partition;
        let position = self.progress.position();
        if error.needs_mending() {
            tracing::error!(
                subscription = self.saga.name, partition_id = %partition, after = position, %error,
                "saga stopped at an entry; it goes on once that can be handled"
            );
        } else {
            tracing::warn!(
                subscription = self.saga.name, partition_id = %partition, after = position, %error,
                "saga tries again"
            );
        }
        self.shared.metrics.subscription_failed(self.saga.name);
        let pause = RETRY_MIN * 2_u32.pow(failures.min(8));
        tokio::select! {
            () = self.shared.clock.sleep(pause.min(RETRY_MAX)) => true,
            () = self.tenure.in_phase(Phase::Draining) => false,
        }
    }

    async fn handle_entry(&self, entry: &Entry, settled: &mut Settled) -> Result<(), EntryError> {
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
                if index >= settled.commands {
                    self.send(event, &view, command, settled).await?;
                }
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

    /// Sends the next command; a refusal for good is put to the saga.
    async fn send(
        &self,
        event: &RecordedEvent,
        view: &StateView,
        command: SagaCommand,
        settled: &mut Settled,
    ) -> Result<(), EntryError> {
        let (commit, index) = (&view.commit, settled.commands);
        let error = match settled.refused.take() {
            Some(error) => error,
            None => match self
                .submit(commit, command, SagaIndex::Command(index))
                .await?
            {
                Err(error) => error,
                Ok(()) => {
                    settled.command();
                    return Ok(());
                }
            },
        };
        let error = settled.refused.insert(error).clone();
        let rejected = RejectedCommand {
            index,
            error: &error,
        };
        match guarded(|| self.saga.on_rejected(event, view, &rejected))? {
            None => self.report(
                commit,
                &error,
                "a saga's command was refused, and the saga has no answer",
            ),
            Some(answers) => self.answer(commit, answers, settled).await?,
        }
        settled.command();
        Ok(())
    }

    /// Sends what answers the refusal of the next command.
    async fn answer(
        &self,
        commit: &Arc<Commit>,
        answers: Vec<SagaCommand>,
        settled: &mut Settled,
    ) -> Result<(), EntryError> {
        settled.any_answered = true;
        for (answer, command) in answers.into_iter().enumerate().skip(settled.answers) {
            let index = SagaIndex::Answer {
                refused: settled.commands,
                answer,
            };
            if let Err(error) = self.submit(commit, command, index).await? {
                self.report(
                    commit,
                    &error,
                    "a saga's answer to a refusal was refused itself",
                );
            }
            settled.answers += 1;
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
            && !matches!(
                error,
                CommandError::Panicked | CommandError::Unwritable { .. } | CommandError::Internal
            );
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
