//! A caller that goes away, whenever it does, changes nothing for its command (R55, R66).

use std::time::Duration;

use wow_kernel::faults::{Call, Moment};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Hold, Note};
use crate::support::{Node, World, code, note, pass, paused, to, until};

/// Every place at which a command waits for storage on its way, and the call that waits there.
const PLACES: [(Call, Moment); 8] = [
    (Call::FindRequest, Moment::Before),
    (Call::FindRequest, Moment::After),
    (Call::LoadHistory, Moment::Before),
    (Call::LoadHistory, Moment::After),
    (Call::Append, Moment::Before),
    (Call::Append, Moment::After),
    (Call::SaveSnapshots, Moment::Before),
    (Call::SaveSnapshots, Moment::After),
];

/// Asks for every one of those calls, as a caller's own request id does.
fn asking() -> Submission {
    let hold = Hold {
        gate: String::new(),
        n: 1,
    };
    to("a", hold).request_id("r-1")
}

async fn is_all_given_back(node: &Node) -> bool {
    let committed = [("outcome", "committed")];
    until(|| node.metric("wow_commands_total", &committed) == 1.0).await;
    until(|| node.in_flight() == 0.0).await;
    // Those whose caller went are removed every second.
    pass(Duration::from_secs(2)).await;
    node.waits_open() == 0.0
}

#[test]
fn r55_a_caller_that_vanishes_at_any_await_changes_nothing() {
    paused(async {
        for (call, moment) in PLACES {
            let world = World::new();
            let plan = world.here().limits(|limits| limits.waiters = 1);
            let node = plan.start().await;
            let gate = node.faults.hold(call, moment);
            let answer = node.begin(asking());
            gate.reached().await;
            answer.abort();
            assert!(answer.await.unwrap_err().is_cancelled());
            gate.release();
            assert!(is_all_given_back(&node).await, "{call:?} {moment:?}");
            assert_eq!(world.notes("a").await, [1], "{call:?} {moment:?}");
            // Its place among the waiting is free again, and the retry is answered.
            let again = node.handle.submit(asking()).await;
            assert!(again.unwrap().duplicate, "{call:?} {moment:?}");
            node.stop().await;
        }
    });
}

#[test]
fn r55_a_caller_that_vanishes_while_its_command_is_admitted_changes_nothing() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let gate = node.faults.hold(Call::FindRequest, Moment::Before);
        // A creation without an id asks storage in admission already (R12).
        let answer = node.begin(Submission::typed(Note { n: 1 }).request_id("r-1"));
        gate.reached().await;
        assert_eq!(node.lanes(), 0.0);
        answer.abort();
        assert!(answer.await.unwrap_err().is_cancelled());
        gate.release();
        assert!(is_all_given_back(&node).await);
        node.stop().await;
    });
}

#[test]
fn r55_a_caller_that_vanishes_while_its_command_is_queued_or_decided_changes_nothing() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        world.gates.close("door");
        let gate = "door".to_owned();
        let decided = node.begin(to("a", Hold { gate, n: 1 }));
        let queued = node.begin(note("a", 2));
        world.gates.reached("door", 1).await;
        decided.abort();
        queued.abort();
        assert!(decided.await.unwrap_err().is_cancelled());
        assert!(queued.await.unwrap_err().is_cancelled());
        world.gates.open("door");
        assert_eq!(code(&node.run(note("a", 3)).await), "Ok");
        assert_eq!(world.notes("a").await, [1, 2, 3]);
        assert_eq!(node.in_flight(), 0.0);
        node.stop().await;
    });
}

#[test]
fn r55_a_caller_that_waits_for_sent_is_gone_before_its_command_runs() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        world.gates.close("door");
        let gate = "door".to_owned();
        let hold = to("a", Hold { gate, n: 1 });
        let sent = node.handle.submit(hold.wait(Stage::Sent)).await.unwrap();
        assert_eq!((sent.stage, sent.aggregate_version), (Stage::Sent, None));
        assert!(!sent.committed);
        world.gates.open("door");
        assert_eq!(code(&node.run(note("a", 2)).await), "Ok");
        assert_eq!(world.notes("a").await, [1, 2]);
        node.stop().await;
    });
}
