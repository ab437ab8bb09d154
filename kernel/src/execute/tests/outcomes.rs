//! What became of an append: known, unknown, found out (R54), and all that follows (R55).

use async_trait::async_trait;
use parking_lot::Mutex;

use super::*;
use crate::id::{PartitionNo, Position};
use crate::ports::{AppendError, AppendReceipt, PartitionHead, StorageError};

/// Adds one to jar `j`, with a request id that admission makes.
fn add() -> Submission {
    act(How::Add(1))
}

#[track_caller]
fn assert_kept(node: &Node, expected: Version) {
    let cached = node.lane.cached.as_ref().unwrap();
    assert_eq!(cached.version, expected);
    assert_eq!(state_of(cached), node.replayed());
    assert_eq!(cached.position, node.log().last().unwrap().position);
}

#[test]
fn r54_an_append_whose_answer_is_lost_is_found() {
    let mut node = Node::with_jar();
    node.faults.script(Call::Append, [Fault::LoseAnswer]);
    let view = view(node.run(add()));
    let stored = node.log().pop().unwrap();
    assert_eq!(view.commit.command_id, stored.command_id);
    assert_eq!(
        (view.commit.position, view.commit.committed_at),
        (stored.position, stored.committed_at)
    );
    assert_eq!(node.effects.decided(), 3, "decided once");
    assert_eq!(node.observed.unknowns.load(Ordering::Relaxed), 1);
    assert_kept(&node, 3);
}

#[test]
fn r54_an_append_that_was_lost_is_made_again_with_the_same_events() {
    let mut node = Node::with_jar();
    node.faults
        .script(Call::Append, [Fault::LoseCall, Fault::LoseCall]);
    let (appends, committed) = node.calls(Call::Append, |node| node.run(add()));
    assert_eq!((appends, version(committed)), (3, 3));
    assert_eq!(node.effects.decided(), 3, "decided once");
    assert_kept(&node, 3);
}

#[test]
fn r54_whatever_fails_on_the_way_the_outcome_is_found_out_while_there_is_time() {
    let scripts = [
        vec![
            Fault::LoseCall,
            Fault::Refuse,
            Fault::Busy,
            Fault::LoseAnswer,
        ],
        vec![Fault::LoseAnswer],
        vec![Fault::LoseCall, Fault::Busy, Fault::Refuse],
    ];
    for appends in scripts {
        let mut node = Node::with_jar();
        node.faults.script(Call::Append, appends.clone());
        let probes = [Fault::Refuse, Fault::LoseAnswer, Fault::LoseCall];
        node.faults.script(Call::Probe, probes);
        assert_eq!(version(node.run(add())), 3, "{appends:?}");
        assert_eq!(node.log().len(), 3, "{appends:?}");
        assert_kept(&node, 3);
    }
}

/// Runs a command that can't be finished, and says how long it took.
#[track_caller]
fn unknown_after(node: &mut Node) -> Duration {
    let before = node.clock.monotonic();
    assert_eq!(code(node.run(add())), "wow.command.outcome-unknown");
    assert_eq!(node.cached_version(), None, "the state is dropped");
    node.clock.monotonic() - before
}

#[test]
fn r54_an_outcome_that_stays_unknown_is_told_at_the_append_timeout() {
    let minute = Duration::from_secs(60);
    let hour = Fault::Delay(Duration::from_secs(3600));
    let storages = [
        ("down since", Fault::LoseCall, Fault::Refuse, Fault::None),
        ("busy since", Fault::LoseCall, Fault::Busy, Fault::None),
        ("lost since", Fault::LoseCall, Fault::LoseCall, Fault::None),
        ("no look", Fault::LoseAnswer, Fault::None, Fault::Refuse),
        ("a look that hangs", Fault::LoseAnswer, Fault::None, hour),
        ("an append that hangs", hour, Fault::None, Fault::None),
        (
            "a second one that hangs",
            Fault::LoseCall,
            hour,
            Fault::None,
        ),
    ];
    for (what, first, then, looks) in storages {
        let mut node = Node::with_jar();
        node.faults.script(Call::Append, [first]);
        node.faults.always(&[Call::Append], then);
        node.faults.always(&[Call::Probe], looks);
        let took = unknown_after(&mut node);
        assert!(took >= minute, "{what}: {took:?}");
        assert!(took <= minute + Duration::from_secs(1), "{what}: {took:?}");
        // Whatever it was, the next command starts from what the log holds.
        node.faults.heal();
        let newest = node.log().len() as Version;
        assert_eq!(version(node.run(add())), newest + 1, "{what}");
        assert_kept(&node, newest + 1);
    }
}

#[test]
fn r54_storage_that_is_down_before_anything_was_sent_keeps_the_state() {
    for (fault, expected) in [
        (Fault::Refuse, "wow.storage.unavailable"),
        (Fault::Busy, "wow.command.busy"),
    ] {
        let mut node = Node::with_jar();
        node.faults.script(Call::Append, [fault]);
        let before = node.clock.monotonic();
        let command = node.build(add());
        let (reads, answer) = node.reads(|node| node.execute(&command));
        assert_eq!((reads, code(answer).as_str()), (0, expected));
        assert_eq!(node.clock.monotonic(), before, "at once");
        assert_kept(&node, 2);
        let (loads, again) = node.calls(Call::LoadHistory, |node| node.run(add()));
        assert_eq!((loads, version(again)), (0, 3));
    }
}

#[test]
fn r54_an_entry_that_storage_always_refuses_is_the_nodes_fault_and_drops_the_state() {
    let mut node = Node::with_jar();
    // A state ahead of the log, as after a restore under a running node.
    node.lane.cached.as_mut().unwrap().version = 7;
    let answer = node.run(act_purely(How::Add(1)).request_id("r"));
    assert_eq!(code(answer), "wow.node.internal");
    assert_eq!(node.cached_version(), None);
    assert_eq!(version(node.run(add())), 3);
}

#[test]
fn r54_anothers_entry_at_the_version_is_a_conflict() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    assert_eq!(version(other.run(add())), 3);
    // The append never arrived, and its version is taken.
    node.faults.script(Call::Append, [Fault::LoseCall]);
    assert_eq!(version(node.run(add())), 4);
    assert_eq!(node.effects.decided(), 4, "decided again on the new state");
    assert_kept(&node, 4);
}

#[test]
fn r54_after_a_first_try_an_id_made_by_admission_is_looked_up() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    assert_eq!(version(other.run(add())), 3);
    let (finds, committed) = node.calls(Call::FindRequest, |node| node.run(add()));
    assert_eq!((finds, version(committed)), (1, 4));
}

#[test]
fn r54_after_a_first_try_an_aggregate_id_made_by_admission_may_have_a_history() {
    let mut node = Node::new(AccessMode::Open);
    let mut other = node.beside(2);
    let name = "jam".to_owned();
    let command = node.build(Submission::typed(Open { name }));
    let put = Submission::typed(Put { amount: 1 }).aggregate_id(command.key().id.as_str());
    assert_eq!(version(other.run(put)), 1);
    assert_eq!(code(node.execute(&command)), "wow.aggregate.exists");
}

/// A log whose first append arrives only when the second one is made.
struct Late {
    store: Arc<MemoryStore>,
    under_way: Mutex<Option<Arc<Commit>>>,
    appends: AtomicUsize,
}

#[async_trait]
impl CommitLog for Late {
    async fn append(&self, commit: Arc<Commit>) -> Result<AppendReceipt, AppendError> {
        if self.appends.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.under_way.lock() = Some(commit);
            return Err(AppendError::OutcomeUnknown("it is still under way".into()));
        }
        let late = self.under_way.lock().take();
        if let Some(late) = late {
            self.store.append(late).await?;
        }
        self.store.append(commit).await
    }

    async fn read_aggregate(
        &self,
        key: &AggregateKey,
        after: Version,
        up_to: Version,
        limit: usize,
    ) -> Result<Vec<Commit>, StorageError> {
        self.store.read_aggregate(key, after, up_to, limit).await
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

#[test]
fn r54_a_write_that_lands_after_the_look_is_our_commit_and_no_duplicate() {
    for request_id in [None, Some("r")] {
        let mut node = Node::with_jar();
        node.kernel.log = Arc::new(Late {
            store: Arc::clone(&node.store),
            under_way: Mutex::default(),
            appends: AtomicUsize::new(0),
        });
        let request = match request_id {
            Some(id) => add().request_id(id),
            None => add(),
        };
        // Found as our own with all that follows a commit, not as somebody's duplicate.
        let view = view(node.run(request));
        assert_eq!(view.commit.version, 3);
        assert_eq!(node.log().len(), 3);
        assert_kept(&node, 3);
    }
}

#[test]
fn r54_a_commit_of_the_very_command_is_no_duplicate_wherever_it_was_run() {
    let mut node = Node::with_jar();
    let mut other = node.beside(2);
    let command = node.build(add());
    assert_eq!(version(other.execute(&command)), 3);
    // Here on an older state: the log's own entry is what counts.
    let found = view(node.execute(&command));
    assert_eq!(found.commit.origin.as_str(), "node-1");
    assert_kept(&node, 3);
    // And here on a newer one.
    assert_eq!(known(node.execute(&command)), (3, false));
    assert_eq!(node.log().len(), 3);
}

#[test]
fn r55_after_the_append_nothing_can_fail() {
    let mut node = Node::with_jar();
    for expected in 3..=64 {
        let command = node.build(add());
        let slow = [Fault::DelayAnswer(Duration::from_secs(1))];
        node.faults.script(Call::Append, slow);
        let (clock, faults) = (node.clock.clone(), node.faults.clone());
        let mut appending = node.start(&command);
        // It is written. Storage goes away for good, and one poll has to bring everything.
        faults.always(&Call::ALL, Fault::Refuse);
        clock.advance(Duration::from_secs(1));
        let Poll::Ready(executed) = poll(&mut appending) else {
            panic!("it waits for something after the append");
        };
        drop(appending);
        faults.heal();
        let view = view(executed);
        assert_eq!(view.commit.version, expected);
        assert_eq!(view.commit.position, expected);
        assert_eq!(view.facts.event_id, Some(command.command_id));
        assert_eq!(view.recent_requests.is_some(), expected == 64);
        assert_kept(&node, expected);
    }
}
