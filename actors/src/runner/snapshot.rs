//! SnapshotRunner: writes the newest state of each aggregate of one partition (R84).
//!
//! Owns: the checkpoint of the snapshot subscription in its partition.
//! Receives: nothing; it follows its partition's feed.
//! Sends: SNAPSHOT signals to waits.
//! Bounded by: one batch at a time, of [`BATCH`] entries.
//! Ends when: the system stops, after what is committed has been written.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use wow_kernel::commit::{StateView, StoredSnapshot};
use wow_kernel::execute::LoadError;
use wow_kernel::id::{AggregateKey, PartitionNo};
use wow_kernel::ports::{Checkpoint, StorageError};
use wow_kernel::wait::{FunctionInfo, Stage};

use super::RunnerGuard;
use super::follow::{Entry, Follower};
use super::progress::{Progress, Superseded};
use crate::shared::{Phase, Shared};
use crate::stages;

/// The name of the kernel's own subscription.
pub(crate) const SNAPSHOT_SUBSCRIPTION: &str = "snapshot";

/// How many entries one batch takes.
const BATCH: usize = 256;

/// How long commits that nobody waits for gather before they are written.
const GATHER: Duration = Duration::from_millis(25);

/// How many gather at most: fewer than the feed keeps.
const GATHER_ENTRIES: u64 = 128;

/// The longest pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// The actor.
#[derive(Debug)]
pub(crate) struct SnapshotRunner {
    work: Option<Work>,
}

#[derive(Debug)]
struct Work {
    shared: Arc<Shared>,
    follower: Follower,
    progress: Progress,
    function: Arc<FunctionInfo>,
    _guard: RunnerGuard,
}

/// Why a batch wasn't written.
#[derive(Debug, thiserror::Error)]
enum BatchError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the state of {key} can't be written: {error}")]
    State {
        key: AggregateKey,
        error: serde_json::Error,
    },
}

impl SnapshotRunner {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        partition: PartitionNo,
        stored: Option<Checkpoint>,
    ) -> Self {
        let function = Arc::new(stages::snapshot_function(&shared.registry));
        let progress = Progress::new(Arc::clone(shared), SNAPSHOT_SUBSCRIPTION, partition, stored);
        let follower = Follower {
            shared: Arc::clone(shared),
            partition,
        };
        let guard = shared.runners.enter();
        let work = Work {
            shared: Arc::clone(shared),
            follower,
            progress,
            function,
            _guard: guard,
        };
        Self { work: Some(work) }
    }
}

impl Actor for SnapshotRunner {
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
            let batch = tokio::select! {
                biased;
                batch = self.next() => batch,
                () = shared.in_phase(Phase::Stopping) => return Ok(()),
                () = sleep_until_due(&shared, due) => {
                    self.progress.save_if_due().await?;
                    continue;
                }
            };
            let written = match batch {
                Ok(batch) => self.write(batch).await,
                Err(error) => Err(error.into()),
            };
            match written {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    self.pause(failures, &error).await;
                    if self.shared.is_in_phase(Phase::Stopping) {
                        return Ok(());
                    }
                }
            }
            self.progress.save_if_due().await?;
        }
    }

    /// The next batch: at once where a caller waits for it, otherwise what gathers in a while,
    /// so that an aggregate that commits often is written less often (R84).
    async fn next(&self) -> Result<Vec<Entry>, StorageError> {
        let position = self.progress.position();
        let feed = self.shared.feeds.of(self.follower.partition);
        feed.grown_beyond(position).await;
        tokio::select! {
            () = feed.wanted_beyond(position) => {}
            () = feed.grown_by(GATHER_ENTRIES, position) => {}
            () = self.shared.clock.sleep(GATHER) => {}
            () = self.shared.in_phase(Phase::Draining) => {}
        }
        self.follower.next(position, BATCH).await
    }

    async fn pause(&self, failures: u32, error: &BatchError) {
        tracing::warn!(partition_id = %self.follower.partition, %error, "snapshots can't be written yet");
        self.shared
            .metrics
            .subscription_failed(SNAPSHOT_SUBSCRIPTION);
        let pause = Duration::from_millis(50) * 2_u32.pow(failures.min(7));
        tokio::select! {
            () = self.shared.clock.sleep(pause.min(RETRY_MAX)) => {}
            () = self.shared.in_phase(Phase::Stopping) => {}
        }
    }

    async fn write(&mut self, batch: Vec<Entry>) -> Result<(), BatchError> {
        let mut newest: HashMap<&AggregateKey, &Entry> = HashMap::new();
        let mut requests = HashMap::new();
        for entry in &batch {
            newest.insert(&entry.commit().key, entry);
            if let Entry::View(StateView {
                recent_requests: Some(set),
                commit,
                ..
            }) = entry
            {
                requests.insert(&commit.key, Arc::clone(set));
            }
        }
        let mut snapshots = Vec::with_capacity(newest.len());
        for (key, entry) in newest {
            if let Some(mut snapshot) = self.snapshot(entry).await? {
                snapshot.recent_requests = requests.remove(key);
                snapshots.push(snapshot);
            }
        }
        if !snapshots.is_empty() {
            self.shared.snapshots.save(snapshots).await?;
        }
        let commits = batch.iter().map(|entry| &**entry.commit());
        self.shared.signal(Stage::Snapshot, &self.function, commits);
        if let Some(last) = batch.last() {
            self.progress.advance(last.commit().position);
        }
        Ok(())
    }

    /// The snapshot that holds an entry, or a later one; none for a type that is unknown here.
    async fn snapshot(&self, entry: &Entry) -> Result<Option<StoredSnapshot>, BatchError> {
        let commit = entry.commit();
        let Some(definition) = self.shared.registry.aggregate(&commit.key.aggregate_type) else {
            tracing::debug!(key = %commit.key, "no snapshot for a type that is unknown here");
            return Ok(None);
        };
        let (version, position, state, facts) = match entry {
            Entry::View(view) => (
                commit.version,
                commit.position,
                Arc::clone(&view.state),
                (*view.facts).clone(),
            ),
            Entry::Stored(_) => {
                let loaded = self
                    .shared
                    .kernel
                    .loader
                    .load(definition, &commit.key)
                    .await?;
                (
                    loaded.version,
                    loaded.position,
                    loaded.state,
                    (*loaded.facts).clone(),
                )
            }
        };
        let state = definition
            .encode_state(&state)
            .map_err(|error| BatchError::State {
                key: commit.key.clone(),
                error,
            })?;
        Ok(Some(StoredSnapshot {
            key: commit.key.clone(),
            version,
            partition: commit.partition,
            position,
            facts,
            state,
            state_revision: definition.spec.state_revision,
            recent_requests: None,
            snapshot_time: 0,
        }))
    }
}

/// Sleeps until a checkpoint is due; for ever where none is.
pub(super) async fn sleep_until_due(shared: &Shared, due: Duration) {
    if due == Duration::MAX {
        std::future::pending::<()>().await;
    }
    shared.clock.sleep(due).await;
}
