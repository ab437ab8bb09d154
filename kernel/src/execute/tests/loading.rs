//! The state: from the cache, else snapshot and later entries, else initial (R50).

use async_trait::async_trait;

use super::*;
use crate::id::{CommandId, PartitionNo, Position, RequestId};
use crate::ports::{AppendError, AppendReceipt, ColdHistory, PartitionHead, Probe, StorageError};

/// A node with a snapshot of version 3, changed by the test, and a log up to version 4. Its lane
/// is cold.
fn with_snapshot(change: impl FnOnce(&mut StoredSnapshot)) -> Node {
    let mut node = Node::with_jar();
    assert_eq!(version(node.run(act(How::Add(1)).request_id("third"))), 3);
    node.save_snapshot(change);
    assert_eq!(version(node.run(act(How::Add(1)))), 4);
    node.lane.cached = None;
    node
}

/// Loads by a command that changes nothing.
fn load(node: &mut Node) -> Jar {
    assert_eq!(unchanged(node.run(act(How::Nothing))), 4);
    state_of(node.lane.cached.as_ref().unwrap())
}

#[test]
fn r50_a_cold_state_is_snapshot_and_tail_in_one_read() {
    let mut node = with_snapshot(|snapshot| {
        snapshot.state = snapshot.state.replace("jam", "jelly");
    });
    let (reads, state) = node.reads(load);
    assert_eq!(reads, 1);
    assert_eq!((state.name.as_str(), state.total), ("jelly", 12));
    assert_eq!(node.observed.ignored.load(Ordering::Relaxed), 0);
}

#[test]
fn r50_a_warm_state_costs_no_read() {
    let mut node = with_snapshot(|_| {});
    load(&mut node);
    let (loads, _) = node.calls(Call::LoadHistory, load);
    assert_eq!(loads, 0);
}

type Change = Box<dyn FnOnce(&mut StoredSnapshot)>;

#[test]
fn r50_a_snapshot_that_cant_be_used_is_counted_and_ignored() {
    let other_commit = CommandId(uuid::Uuid::from_u128(7));
    let changes: [(&str, Change); 6] = [
        ("an older revision", Box::new(|s| s.state_revision = 2)),
        ("a newer revision", Box::new(|s| s.state_revision = 4)),
        ("no JSON", Box::new(|s| s.state.truncate(5))),
        (
            "another schema",
            Box::new(|s| s.state = r#"{"name":7}"#.into()),
        ),
        ("ahead of the log", Box::new(|s| s.version = 5)),
        (
            "of another history",
            Box::new(move |s| s.facts.event_id = Some(other_commit)),
        ),
    ];
    for (what, change) in changes {
        let mut node = with_snapshot(change);
        let state = load(&mut node);
        assert_eq!(state, node.replayed(), "{what}");
        let ignored = node.observed.ignored.load(Ordering::Relaxed);
        assert_eq!(ignored, 1, "{what}");
        // The set comes from the log, then.
        let retry = node.run(act(How::Add(1)).request_id("third"));
        assert_eq!(known(retry), (3, true), "{what}");
    }
}

#[test]
fn r50_at_a_version_where_the_set_is_written_a_snapshot_ahead_is_found_out_too() {
    let mut node = Node::with_jar();
    for _ in 3..=63 {
        node.run(act_purely(How::Add(1)));
    }
    node.save_snapshot(|snapshot| snapshot.version = 64);
    node.lane.cached = None;
    assert_eq!(unchanged(node.run(act(How::Nothing))), 63);
    assert_eq!(node.observed.ignored.load(Ordering::Relaxed), 1);
    assert_eq!(version(node.run(act(How::Add(1)))), 64);
}

#[test]
fn r32_a_snapshot_whose_reading_panics_is_ignored() {
    let registry = registry();
    let key = AggregateKey {
        aggregate_type: AggregateType::trusted("cursed"),
        ..jar()
    };
    let node = with_snapshot(|_| {});
    let definition = registry.aggregate(&key.aggregate_type).unwrap();
    // The jar's snapshot and log, read as if they were the cursed type's.
    let loaded = finish(&node.clock, node.kernel.loader.load(definition, &jar()));
    assert_eq!(node.observed.ignored.load(Ordering::Relaxed), 1);
    assert!(matches!(
        loaded,
        Err(LoadError::Panicked { version: 0, .. })
    ));
}

#[test]
fn r50_recent_requests_that_cant_be_read_are_left_to_the_log() {
    let mut node = with_snapshot(|snapshot| snapshot.recent_requests = Some("[".into()));
    assert_eq!(load(&mut node).total, 12);
    assert_eq!(node.observed.ignored.load(Ordering::Relaxed), 0);
}

#[test]
fn r50_an_event_that_cant_be_read_stops_every_command_and_nothing_is_cached() {
    let events = [
        ("unknown name", "jar_broken", 1, "{}"),
        ("newer revision", "added", 3, r#"{"amount":1}"#),
        ("no upcaster", "noted", 0, r#"{"text":"x"}"#),
        ("refused by the upcaster", "added", 1, r#"{"amount":1}"#),
        ("another body", "noted", 1, r#"{"text":1}"#),
        ("a built-in one", "owner_transferred", 1, "{}"),
    ];
    for (what, name, revision, body) in events {
        let mut node = Node::with_jar();
        node.append_event(name, revision, body);
        for request in [act(How::Add(1)), act_purely(How::Add(1)), act(How::Nothing)] {
            node.lane.cached = None;
            let error = failure(node.run(request));
            assert_eq!(error, CommandError::EventUnreadable, "{what}");
            assert!(error.is_retryable(), "a newer node may read it");
            assert_eq!(node.cached_version(), None, "{what}");
        }
        assert_eq!(node.log().len(), 3, "{what}");
    }
}

#[test]
fn r32_an_evolve_that_panics_on_the_log_fails_the_command() {
    let mut node = Node::with_jar();
    node.append_event("poisoned", 1, "{}");
    node.lane.cached = None;
    assert_eq!(code(node.run(act(How::Add(1)))), "wow.command.panicked");
    assert_eq!(node.cached_version(), None);
}

#[test]
fn r50_an_older_event_is_lifted_to_the_current_revision() {
    let mut node = Node::with_jar();
    node.append_event("added", 1, r#"{"sum":32}"#);
    node.lane.cached = None;
    let view = view(node.run(act(How::Add(1))));
    assert_eq!(view.commit.version, 4);
    assert_eq!(state_of(node.lane.cached.as_ref().unwrap()).total, 43);
}

#[test]
fn r50_a_long_history_is_read_in_pages() {
    for newest in [256, 257, 756, 757, 1300] {
        let mut node = Node::with_jar();
        for _ in 3..=newest {
            node.run(act_purely(How::Add(1)));
        }
        node.lane.cached = None;
        assert_eq!(unchanged(node.run(act(How::Nothing))), newest);
        let state = state_of(node.lane.cached.as_ref().unwrap());
        assert_eq!(state, node.replayed(), "{newest}");
        let recent = &node.lane.cached.as_ref().unwrap().recent;
        assert_eq!(recent.len(), 256);
    }
}

#[test]
fn r50_storage_that_is_down_answers_503_and_caches_nothing() {
    let mut node = Node::with_jar();
    node.lane.cached = None;
    node.faults.script(Call::LoadHistory, [Fault::Refuse]);
    assert_eq!(code(node.run(act(How::Add(1)))), "wow.storage.unavailable");
    assert_eq!(node.cached_version(), None);
    assert_eq!(version(node.run(act(How::Add(1)))), 3);
}

/// A store that has lost something.
struct Damaged {
    store: Arc<MemoryStore>,
    lost: Lost,
}

#[derive(Clone, Copy)]
enum Lost {
    /// A version of every aggregate.
    Version(Version),
    /// The meaning of a row of every cold history.
    Meaning,
}

impl Damaged {
    fn keep(&self, commits: Vec<Commit>) -> Vec<Commit> {
        let is_kept =
            |commit: &Commit| !matches!(self.lost, Lost::Version(lost) if lost == commit.version);
        commits.into_iter().filter(is_kept).collect()
    }
}

#[async_trait]
impl History for Damaged {
    async fn load(&self, key: &AggregateKey) -> Result<ColdHistory, StorageError> {
        if let Lost::Meaning = self.lost {
            return Err(StorageError::Corrupt("a row of letters".into()));
        }
        let cold = self.store.load(key).await?;
        Ok(ColdHistory {
            tail: self.keep(cold.tail),
            ..cold
        })
    }

    async fn probe(
        &self,
        key: &AggregateKey,
        request_id: Option<&RequestId>,
    ) -> Result<Probe, StorageError> {
        self.store.probe(key, request_id).await
    }
}

#[async_trait]
impl CommitLog for Damaged {
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        self.store.append(commit).await
    }

    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        let read = self.store.read_aggregate(key, after, up_to, limit);
        Ok(self.keep(read.await?))
    }

    async fn read_partition(
        &self,
        partition: PartitionNo,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        self.store.read_partition(partition, after, limit).await
    }

    async fn heads(&self, partitions: &[PartitionNo]) -> Result<Vec<PartitionHead>, StorageError> {
        self.store.heads(partitions).await
    }
}

fn damage(node: &mut Node, lost: Lost) {
    let store = Arc::clone(&node.store);
    let damaged = Arc::new(Damaged { store, lost });
    node.kernel.loader.history = damaged.clone();
    node.kernel.loader.log = damaged;
    node.lane.cached = None;
}

#[test]
fn r50_a_hole_in_the_log_is_never_loaded_over() {
    for lost in [1, 2, 3] {
        let mut node = with_snapshot(|snapshot| snapshot.state_revision = 1);
        damage(&mut node, Lost::Version(lost));
        let answer = node.run(act(How::Add(1)));
        assert_eq!(code(answer), "wow.log.event-unreadable", "without {lost}");
        assert_eq!(node.cached_version(), None);
    }
}

#[test]
fn r50_a_snapshot_row_that_cant_be_read_is_no_reason_to_stop() {
    let mut node = with_snapshot(|_| {});
    damage(&mut node, Lost::Meaning);
    assert_eq!(load(&mut node), node.replayed());
    assert_eq!(node.observed.ignored.load(Ordering::Relaxed), 1);
}
