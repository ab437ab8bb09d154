//! Waits for the snapshot: the default, for whoever reads its own write (R60, R63, R65).

use std::time::Duration;

use wow_kernel::faults::{Call, Fault, Moment};
use wow_kernel::ports::SnapshotStore;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Hold, Look, Reject};
use crate::support::{World, code, key, note, pass, paused, to, until};

#[test]
fn r60_an_answer_at_snapshot_finds_its_own_write() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        for n in 1..20 {
            let answer = node.handle.submit(note("a", n)).await.unwrap();
            assert_eq!(
                (answer.stage, answer.aggregate_version),
                (Stage::Snapshot, Some(n))
            );
            assert_eq!(&*answer.function.processor, "snapshot");
            let held = world.store.versions(&[key("nasty", "a")]).await.unwrap();
            assert_eq!(held, [n]);
        }
        assert_eq!(node.waits_open(), 0.0);
        node.stop().await;
    });
}

#[test]
fn r65_a_duplicate_waits_for_the_stage_of_the_first_commit() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let first = node.begin(note("a", 1).request_id("r-1"));
        gate.reached().await;
        let second = node.begin(note("a", 2).request_id("r-1"));
        let duplicates = [("outcome", "duplicate")];
        until(|| node.metric("wow_commands_total", &duplicates) == 1.0).await;
        pass(Duration::from_millis(100)).await;
        assert!(!first.is_finished() && !second.is_finished());
        gate.release();
        let (first, second) = (
            first.await.unwrap().unwrap(),
            second.await.unwrap().unwrap(),
        );
        assert_eq!((second.duplicate, second.stage), (true, Stage::Snapshot));
        assert_eq!(second.command_id, first.command_id);
        assert_ne!(second.wait_command_id, first.command_id);
        assert_eq!(second.aggregate_version, Some(1));
        node.stop().await;
    });
}

#[test]
fn r65_a_duplicate_of_what_is_long_done_is_answered_from_storage_at_once() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let request = || note("a", 1).request_id("r-1");
        assert_eq!(code(&node.handle.submit(request()).await), "Ok");
        assert_eq!(code(&node.handle.submit(note("a", 2)).await), "Ok");
        let before = tokio::time::Instant::now();
        let again = node.handle.submit(request()).await.unwrap();
        assert_eq!((again.duplicate, again.aggregate_version), (true, Some(1)));
        assert_eq!(again.stage, Stage::Snapshot);
        assert_eq!(before.elapsed(), Duration::ZERO);
        node.stop().await;
    });
}

#[test]
fn r65_without_events_or_with_a_rejection_the_wait_ends_at_once() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let held = node.begin(note("a", 1));
        gate.reached().await;
        let looked = node.handle.submit(to("a", Look {})).await.unwrap();
        assert_eq!(
            (looked.stage, looked.aggregate_version),
            (Stage::Processed, Some(1))
        );
        assert!(!looked.committed);
        let no = "nasty.no".to_owned();
        let rejected = node.handle.submit(to("a", Reject { code: no })).await;
        assert_eq!(code(&rejected), "nasty.no");
        gate.release();
        assert_eq!(code(&held.await.unwrap()), "Ok");
        node.stop().await;
    });
}

#[test]
fn r63_a_lost_signal_is_found_by_a_look_at_storage() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        // This node's own snapshots hang; another writes them and signals nobody here.
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let before = tokio::time::Instant::now();
        let waiting = node.begin(note("a", 1));
        gate.reached().await;
        let mut other = world.here();
        other.name = "n-2";
        let other = other.start().await;
        let answer = waiting.await.unwrap().unwrap();
        assert_eq!(
            (answer.stage, answer.aggregate_version),
            (Stage::Snapshot, Some(1))
        );
        assert!(before.elapsed() <= Duration::from_secs(2));
        drop(gate);
        node.stop().await;
        other.stop().await;
    });
}

#[test]
fn r63_a_wait_timeout_says_what_is_known() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        node.faults.always(&[Call::SaveSnapshots], Fault::Refuse);
        let before = tokio::time::Instant::now();
        let request = note("a", 1)
            .request_id("r-1")
            .timeout(Duration::from_secs(5));
        let answer = node.handle.submit(request).await;
        assert_eq!(before.elapsed(), Duration::from_secs(5));
        assert_eq!(code(&answer), "wow.wait.timeout");
        let answer = answer.unwrap();
        assert_eq!(
            (answer.committed, answer.aggregate_version),
            (true, Some(1))
        );
        assert_eq!(answer.request_id.as_str(), "r-1");
        assert_eq!(answer.stage, Stage::Processed);
        pass(Duration::from_secs(2)).await;
        assert_eq!((node.waits_open(), node.in_flight()), (0.0, 0.0));
        node.faults.heal();
        assert_eq!(code(&node.handle.submit(note("a", 2)).await), "Ok");
        node.stop().await;
    });
}

#[test]
fn r63_storage_that_hangs_holds_no_caller_much_beyond_its_deadline() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        node.faults.always(&[Call::SaveSnapshots], Fault::Refuse);
        let gates = [
            node.faults.hold(Call::SnapshotVersions, Moment::Before),
            node.faults.hold(Call::SnapshotVersions, Moment::Before),
        ];
        let before = tokio::time::Instant::now();
        let request = note("a", 1).timeout(Duration::from_secs(5));
        let answer = node.handle.submit(request).await;
        assert_eq!(code(&answer), "wow.wait.timeout");
        assert!(gates.iter().all(|gate| gate.is_reached()));
        assert!(before.elapsed() < Duration::from_secs(7));
        node.stop().await;
    });
}

#[test]
fn r22_a_late_outcome_is_looked_up_before_the_caller_is_told_of_a_timeout() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let gate = node.faults.hold(Call::Append, Moment::After);
        let patient = Duration::from_secs(2);
        let request = note("a", 1).request_id("r-1").timeout(patient);
        let committed = node.begin(request.wait(Stage::Processed));
        gate.reached().await;
        // The commit is in the log, and its lane hears of it only later.
        let answer = committed.await.unwrap().unwrap();
        assert_eq!(
            (answer.committed, answer.aggregate_version),
            (true, Some(1))
        );
        assert!(answer.succeeded());
        gate.release();

        world.gates.close("door");
        let gate = "door".to_owned();
        let hold = to("a", Hold { gate, n: 2 }).request_id("r-2");
        let undecided = node.handle.submit(hold.timeout(patient)).await;
        assert_eq!(code(&undecided), "wow.command.timeout");
        let undecided = undecided.unwrap();
        assert_eq!(
            (undecided.committed, undecided.request_id.as_str()),
            (false, "r-2")
        );
        // A timeout stops nothing: the command commits, and a retry gets its result (R55).
        world.gates.open("door");
        let gate = String::new();
        let retry = to("a", Hold { gate, n: 2 }).request_id("r-2");
        assert!(node.handle.submit(retry).await.unwrap().duplicate);
        assert_eq!(world.notes("a").await, [1, 2]);
        node.stop().await;
    });
}
