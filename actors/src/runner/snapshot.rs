//! SnapshotRunner: writes the newest state of each aggregate of one partition (R84).
//!
//! Owns: the checkpoint of the snapshot subscription in its partition.
//! Receives: nothing; it follows its partition's feed.
//! Sends: SNAPSHOT signals to waits.
//! Bounded by: one batch at a time, of [`BATCH`] entries.
//! Ends when: its partition is given up or the system stops, after what is committed has been
//! written; at once when the partition is another's already.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use wow_kernel::commit::{AggregateFacts, Commit, StateView, StoredSnapshot};
use wow_kernel::error::CommandError;
use wow_kernel::execute::{LoadError, Loaded};
use wow_kernel::id::{AggregateKey, Position, Version};
use wow_kernel::ports::{Checkpoint, StorageError};
use wow_kernel::recent::WRITTEN_EVERY;
use wow_kernel::registry::ErasedState;
use wow_kernel::wait::{FunctionInfo, Stage};

use super::RunnerGuard;
use super::follow::{Entry, Follower};
use super::progress::{Progress, Superseded};
use crate::shared::{Phase, Shared};
use crate::stages;
use crate::tenure::Tenure;
use crate::vital::Vital;

/// The name of the kernel's own subscription.
pub(crate) const SNAPSHOT_SUBSCRIPTION: &str = "snapshot";

/// How many entries one batch takes.
const BATCH: usize = 256;

/// How long commits that nobody waits for gather before they are written.
const GATHER: Duration = Duration::from_millis(25);

/// How many gather at most: fewer than the feed keeps.
const GATHER_ENTRIES: u64 = 128;

/// How many bytes of states are written as JSON before others on the thread have their turn.
const TURN_BYTES: usize = 256 * 1024;

/// The longest pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Every entry of a batch is looked up by its key.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// The actor.
#[derive(Debug)]
pub(crate) struct SnapshotRunner {
    work: Option<Work>,
}

#[derive(Debug)]
struct Work {
    shared: Arc<Shared>,
    tenure: Arc<Tenure>,
    follower: Follower,
    progress: Progress,
    function: Arc<FunctionInfo>,
    /// Where it ends, once it is told to: commits may go on in a partition that is given up.
    last: OnceLock<Position>,
    // Before the guard, so that whoever sees the runner gone knows why.
    _vital: Vital,
    _guard: RunnerGuard,
}

/// Why a batch wasn't written.
#[derive(Debug, thiserror::Error)]
enum BatchError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl SnapshotRunner {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        tenure: &Arc<Tenure>,
        stored: Option<Checkpoint>,
    ) -> Self {
        let function = Arc::new(stages::snapshot_function(&shared.registry));
        let progress = Progress::new(shared, SNAPSHOT_SUBSCRIPTION, tenure, stored);
        let follower = Follower::new(shared, tenure.partition, progress.position());
        let work = Work {
            shared: Arc::clone(shared),
            tenure: Arc::clone(tenure),
            follower,
            progress,
            function,
            last: OnceLock::new(),
            _vital: Vital::of_runner(shared, tenure, "snapshot runner"),
            _guard: RunnerGuard::enter(shared, tenure),
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
                () = self.tenure.in_phase(Phase::Ended) => return Err(Superseded),
                () = self.all_written() => return Ok(()),
                batch = self.next() => batch,
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
                    if self.tenure.is_in_phase(Phase::Stopping) {
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
            () = self.tenure.in_phase(Phase::Draining) => {}
        }
        self.follower.next(position, BATCH).await
    }

    /// Ends when it is told to stop, and all that was known by then is written.
    async fn all_written(&self) {
        self.tenure.in_phase(Phase::Stopping).await;
        let feed = self.shared.feeds.of(self.follower.partition);
        let last = *self.last.get_or_init(|| feed.head());
        if last > self.progress.position() {
            std::future::pending::<()>().await;
        }
    }

    async fn pause(&self, failures: u32, error: &BatchError) {
        tracing::warn!(partition_id = %self.follower.partition, %error, "snapshots can't be written yet");
        self.shared
            .metrics
            .subscription_failed(SNAPSHOT_SUBSCRIPTION);
        let pause = Duration::from_millis(50) * 2_u32.pow(failures.min(7));
        tokio::select! {
            () = self.shared.clock.sleep(pause.min(RETRY_MAX)) => {}
            () = self.tenure.in_phase(Phase::Stopping) => {}
        }
    }

    async fn write(&mut self, batch: Vec<Entry>) -> Result<(), BatchError> {
        let mut newest: HashMap<&AggregateKey, &Entry> = HashMap::default();
        let mut requests: HashMap<&AggregateKey, Arc<str>> = HashMap::default();
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
        let mut unwritable: HashSet<&AggregateKey> = HashSet::new();
        let mut unyielded = 0;
        for (key, entry) in newest {
            let written = match requests.is_empty() {
                true => None,
                false => requests.remove(key),
            };
            match self.snapshot(entry, written).await? {
                Made::Snapshot(snapshot) => {
                    unyielded += snapshot.state.len();
                    snapshots.push(*snapshot);
                }
                Made::PassedOver => {}
                Made::Unwritable => {
                    unwritable.insert(key);
                }
            }
            if unyielded > TURN_BYTES {
                // Large states must not hold up the lanes on this thread.
                tokio::task::yield_now().await;
                unyielded = 0;
            }
        }
        if !snapshots.is_empty() {
            self.shared.snapshots.save(snapshots).await?;
        }
        let (failed, held): (Vec<&Commit>, Vec<&Commit>) = batch
            .iter()
            .map(|entry| &**entry.commit())
            .partition(|commit| unwritable.contains(&commit.key));
        self.signal(None, held);
        self.signal(Some(&CommandError::Internal), failed);
        if let Some(last) = batch.last() {
            self.progress.advance(last.commit().position);
        }
        Ok(())
    }

    fn signal(&self, error: Option<&CommandError>, commits: Vec<&Commit>) {
        self.shared
            .signal(Stage::Snapshot, &self.function, error, commits.into_iter());
    }

    /// The snapshot that holds an entry, or a later one.
    async fn snapshot(
        &self,
        entry: &Entry,
        recent_requests: Option<Arc<str>>,
    ) -> Result<Made, BatchError> {
        let commit = entry.commit();
        let Some(definition) = self.shared.registry.aggregate(&commit.key.aggregate_type) else {
            tracing::debug!(key = %commit.key, "no snapshot for a type that is unknown here");
            return Ok(Made::PassedOver);
        };
        let newest = match entry {
            Entry::View(view) => Newest {
                version: commit.version,
                position: commit.position,
                state: Arc::clone(&view.state),
                facts: Arc::clone(&view.facts),
                recent_requests,
            },
            Entry::Stored(_) => {
                let loader = &self.shared.kernel.loader;
                Newest::of(loader.load(definition, &commit.key).await?)
            }
        };
        // Users' code writes the state, and may panic.
        let encode = AssertUnwindSafe(|| definition.encode_state(&newest.state));
        let state = match catch_unwind(encode) {
            Ok(Ok(state)) => state,
            failed => {
                let error = failed.map(|encoded| encoded.err());
                tracing::error!(key = %commit.key, ?error, "a state can't be written as a snapshot");
                self.shared
                    .metrics
                    .subscription_failed(SNAPSHOT_SUBSCRIPTION);
                return Ok(Made::Unwritable);
            }
        };
        Ok(Made::Snapshot(Box::new(StoredSnapshot {
            key: commit.key.clone(),
            version: newest.version,
            partition: commit.partition,
            position: newest.position,
            facts: (*newest.facts).clone(),
            state,
            state_revision: definition.spec.state_revision,
            recent_requests: newest.recent_requests,
            snapshot_time: 0,
        })))
    }
}

/// What a batch makes of one aggregate.
enum Made {
    Snapshot(Box<StoredSnapshot>),
    /// Its type is unknown here: what is passed over is handled (R65).
    PassedOver,
    /// Its state can't be written as JSON. The log is the truth, and the others go on.
    Unwritable,
}

/// What a snapshot is made of.
struct Newest {
    version: Version,
    position: Position,
    state: ErasedState,
    facts: Arc<AggregateFacts>,
    recent_requests: Option<Arc<str>>,
}

impl Newest {
    /// From the log, where no lane handed the state over. The requests are written with it, for
    /// those that an earlier batch should have written may never have been.
    fn of(loaded: Loaded) -> Self {
        let written = loaded.version - loaded.version % WRITTEN_EVERY;
        let requests = (written > 0).then(|| Arc::from(loaded.recent.to_json_up_to(written)));
        Self {
            version: loaded.version,
            position: loaded.position,
            state: loaded.state,
            facts: loaded.facts,
            recent_requests: requests,
        }
    }
}

/// Sleeps until a checkpoint is due; for ever where none is.
pub(super) async fn sleep_until_due(shared: &Shared, due: Duration) {
    if due == Duration::MAX {
        std::future::pending::<()>().await;
    }
    shared.clock.sleep(due).await;
}
