//! The log writer over a database that fails as it is told to: what SQLite can't be made to do
//! when a test wants it.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;
use uuid::Uuid;
use wow_kernel::commit::RecordedEvent;
use wow_kernel::id::{
    AggregateId, AggregateType, CommandId, NodeName, OwnerId, PartitionNo, RequestId, SpaceId,
    TenantId, Version,
};

use super::super::observer::Unobserved;
use super::*;

/// What becomes of a batch.
#[derive(Debug, Clone)]
enum Fate {
    Written,
    Fault(BatchFault),
    Panic,
}

#[derive(Debug, Default)]
struct Script {
    fates: VecDeque<Fate>,
    /// The request ids that look-ups find.
    taken: Vec<&'static str>,
    /// What each batch held.
    batches: Vec<Vec<String>>,
    resets: usize,
}

/// Does what its script says, then writes everything.
#[derive(Debug, Clone, Default)]
struct Scripted(Arc<Mutex<Script>>);

impl Scripted {
    fn of(fates: impl IntoIterator<Item = Fate>) -> Self {
        let scripted = Self::default();
        scripted.0.lock().fates.extend(fates);
        scripted
    }

    fn finding(self, taken: &[&'static str]) -> Self {
        self.0.lock().taken.extend(taken);
        self
    }

    fn batches(&self) -> Vec<Vec<String>> {
        self.0.lock().batches.clone()
    }
}

#[async_trait]
impl BatchStore for Scripted {
    async fn execute(&mut self, batch: &Batch<'_>) -> Result<Written, BatchFault> {
        let mut script = self.0.lock();
        let requests = batch
            .entries
            .iter()
            .map(|entry| entry.commit.request_id.to_string());
        script.batches.push(requests.collect());
        match script.fates.pop_front().unwrap_or(Fate::Written) {
            Fate::Written => {
                let receipt = AppendReceipt {
                    position: 1,
                    committed_at: 1,
                };
                Ok(Written {
                    receipts: vec![receipt; batch.entries.len()],
                    moved: vec![true; batch.checkpoints.len()],
                })
            }
            Fate::Fault(fault) => Err(fault),
            Fate::Panic => panic!("as the script says"),
        }
    }

    async fn taken(&mut self, entries: &[&Entry]) -> Result<Vec<Option<UniqueKey>>, StorageError> {
        let script = self.0.lock();
        let is_taken = |entry: &&Entry| script.taken.contains(&entry.commit.request_id.as_str());
        let taken = entries
            .iter()
            .map(|entry| is_taken(entry).then_some(UniqueKey::Request));
        Ok(taken.collect())
    }

    async fn reset(&mut self) {
        self.0.lock().resets += 1;
    }

    async fn close(&mut self) {}
}

fn commit(id: &str, version: Version) -> Arc<Commit> {
    Arc::new(Commit {
        partition: PartitionNo(0),
        position: 0,
        key: AggregateKey {
            tenant: TenantId::default_tenant(),
            aggregate_type: AggregateType::trusted("account"),
            id: AggregateId::trusted(id),
        },
        version,
        request_id: RequestId::trusted(format!("{id}-{version}")),
        command_id: CommandId(Uuid::nil()),
        command_type: Arc::from("open"),
        principal: Arc::from(""),
        owner: OwnerId::none(),
        space: SpaceId::none(),
        origin: NodeName::trusted("node-1"),
        events: Arc::from([RecordedEvent {
            name: Arc::from("opened"),
            revision: 1,
            body: RawValue::from_string("{}".to_owned()).unwrap(),
        }]),
        result: None,
        headers: std::collections::BTreeMap::new(),
        committed_at: 0,
    })
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        subscription: "snapshot".to_owned(),
        partition: PartitionNo(0),
        position: 1,
        epoch: 1,
        generation: 1,
    }
}

/// A writer whose queue is filled before it starts, so that all of it is one batch.
struct Bench {
    handle: WriterHandle,
    writer: Writer<Scripted>,
    appends: Vec<JoinHandle<Result<AppendReceipt, AppendError>>>,
}

impl Bench {
    fn new(store: &Scripted) -> Self {
        let (handle, queue) = WriterHandle::new(QueueLimits::default());
        let observer = Arc::new(Unobserved);
        let writer = Writer::new(queue, store.clone(), BatchLimits::default(), observer);
        Self {
            handle,
            writer,
            appends: Vec::new(),
        }
    }

    /// Queues an append; the tests' runtime has one thread, so a yield lets it get there.
    async fn append(mut self, commit: Arc<Commit>) -> Self {
        let handle = self.handle.clone();
        self.appends
            .push(tokio::spawn(async move { handle.append(commit).await }));
        tokio::task::yield_now().await;
        self
    }

    /// Runs the writer until all is answered.
    async fn run(self) -> Vec<Result<AppendReceipt, AppendError>> {
        let stop = CancellationToken::new();
        stop.cancel();
        drop(self.handle);
        let run = tokio::time::timeout(Duration::from_secs(30), self.writer.run(stop));
        run.await.unwrap();
        let mut outcomes = Vec::new();
        for append in self.appends {
            outcomes.push(append.await.unwrap());
        }
        outcomes
    }
}

fn unknown() -> BatchFault {
    BatchFault::Unknown("lost at commit".to_owned())
}

fn unavailable() -> BatchFault {
    BatchFault::Unavailable("away".to_owned())
}

#[tokio::test]
async fn r54_a_failure_at_commit_makes_every_entry_of_the_batch_unknown() {
    let store = Scripted::of([Fate::Fault(unknown())]);
    let bench = Bench::new(&store)
        .append(commit("a", 1))
        .await
        .append(commit("b", 1))
        .await;
    for outcome in bench.run().await {
        assert!(
            matches!(outcome, Err(AppendError::OutcomeUnknown(_))),
            "{outcome:?}"
        );
    }
    // It is for the kernel to find out what happened, so nothing is tried again here.
    assert_eq!(store.batches().len(), 1);
    assert_eq!(
        store.0.lock().resets,
        1,
        "the connection isn't trusted any more"
    );
}

#[tokio::test]
async fn r75_a_failure_before_commit_is_unavailable_and_the_next_batch_goes_in() {
    let store = Scripted::of([Fate::Fault(unavailable())]);
    let bench = Bench::new(&store).append(commit("a", 1)).await;
    let outcomes = bench.run().await;
    assert_eq!(outcomes, [Err(AppendError::Unavailable("away".to_owned()))]);
    let outcomes = Bench::new(&store).append(commit("a", 1)).await.run().await;
    assert!(outcomes[0].is_ok());
}

#[tokio::test]
async fn after_a_second_violation_entries_go_one_by_one_by_aggregate() {
    let taken = || Fate::Fault(BatchFault::Taken(UniqueKey::Version));
    // The batch, the batch again without what was found, then one by one: the first aggregate's
    // two entries, and one that meets a row which no look-up finds.
    let store = Scripted::of([taken(), taken(), Fate::Written, taken()]).finding(&["b-1"]);
    let bench = Bench::new(&store)
        .append(commit("a", 1))
        .await
        .append(commit("b", 1))
        .await
        .append(commit("c", 1))
        .await
        .append(commit("a", 2))
        .await
        .append(commit("d", 1))
        .await;
    let outcomes = bench.run().await;
    assert!(
        outcomes[0].is_ok() && outcomes[3].is_ok() && outcomes[4].is_ok(),
        "{outcomes:?}"
    );
    assert_eq!(outcomes[1], Err(AppendError::DuplicateRequest));
    assert_eq!(outcomes[2], Err(AppendError::VersionConflict));
    let expected: [&[&str]; 5] = [
        &["a-1", "b-1", "c-1", "a-2", "d-1"],
        &["a-1", "c-1", "a-2", "d-1"],
        &["a-1", "a-2"],
        &["c-1"],
        &["d-1"],
    ];
    assert_eq!(store.batches(), expected);
}

#[tokio::test]
async fn an_entry_that_is_always_refused_fails_alone() {
    let refused = BatchFault::Refused("too big".to_owned());
    let store = Scripted::of([Fate::Fault(refused.clone()), Fate::Fault(refused)]);
    let bench = Bench::new(&store)
        .append(commit("a", 1))
        .await
        .append(commit("b", 1))
        .await;
    let outcomes = bench.run().await;
    assert_eq!(outcomes[0], Err(AppendError::Refused("too big".to_owned())));
    assert!(outcomes[1].is_ok());
}

#[tokio::test]
async fn one_by_one_ends_where_the_database_goes_away() {
    let refused = BatchFault::Refused("too big".to_owned());
    let store = Scripted::of([Fate::Fault(refused), Fate::Fault(unavailable())]);
    let bench = Bench::new(&store)
        .append(commit("a", 1))
        .await
        .append(commit("b", 1))
        .await;
    for outcome in bench.run().await {
        assert!(
            matches!(outcome, Err(AppendError::Unavailable(_))),
            "{outcome:?}"
        );
    }
    assert_eq!(store.batches().len(), 2, "the second was never sent");
}

#[tokio::test]
async fn a_panic_makes_its_batch_unknown_and_the_writer_goes_on() {
    let store = Scripted::of([Fate::Panic]);
    let (handle, queue) = WriterHandle::new(QueueLimits::default());
    let writer = Writer::new(queue, store, BatchLimits::default(), Arc::new(Unobserved));
    let stop = CancellationToken::new();
    let running = tokio::spawn(writer.run(stop.clone()));
    let outcome = handle.append(commit("a", 1)).await;
    assert!(
        matches!(outcome, Err(AppendError::OutcomeUnknown(_))),
        "{outcome:?}"
    );
    assert!(handle.append(commit("b", 1)).await.is_ok());
    stop.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_save_of_unknown_outcome_may_be_tried_again() {
    let store = Scripted::of([Fate::Fault(unknown()), Fate::Fault(unknown())]);
    let (handle, queue) = WriterHandle::new(QueueLimits::default());
    let writer = Writer::new(queue, store, BatchLimits::default(), Arc::new(Unobserved));
    let running = tokio::spawn(writer.run(CancellationToken::new()));
    let saved = handle.save(Vec::new()).await;
    assert!(
        matches!(saved, Err(StorageError::Unavailable(_))),
        "{saved:?}"
    );
    let moved = handle.move_to(checkpoint()).await;
    assert!(
        matches!(moved, Err(StorageError::Unavailable(_))),
        "{moved:?}"
    );
    assert_eq!(handle.move_to(checkpoint()).await, Ok(true));
    // Nobody can hand it work any more: it ends.
    drop(handle);
    running.await.unwrap();
}
