//! One aggregate's commands run one at a time, in order of arrival, and hold up nobody else (R30).

use std::time::Duration;

use futures_util::future::join_all;
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Block, Hold, Relay};
use crate::support::{World, code, note, paused, to};

fn hold(id: &str, gate: &str, n: u64) -> Submission {
    let gate = gate.to_owned();
    to(id, Hold { gate, n })
}

fn relay(id: &str, gate: &str, path: &[&str]) -> Submission {
    let relay = Relay {
        path: path.iter().map(|id| (*id).to_owned()).collect(),
        gate: gate.to_owned(),
    };
    to(id, relay)
}

#[tokio::test]
async fn r30_a_lane_runs_its_commands_in_order_of_arrival() {
    let world = World::new();
    let node = world.on_threads(2).start().await;
    world.gates.close("first");
    let first = node.begin(hold("a", "first", 0));
    world.gates.reached("first", 1).await;
    // Each has arrived when it is answered with SENT.
    for n in 1..100 {
        let answer = node.handle.submit(note("a", n).wait(Stage::Sent)).await;
        assert_eq!(answer.unwrap().stage, Stage::Sent);
    }
    let last = node.begin(note("a", 100).wait(Stage::Processed));
    assert!(world.notes("a").await.is_empty());
    world.gates.open("first");
    assert_eq!(first.await.unwrap().unwrap().aggregate_version, Some(1));
    assert_eq!(last.await.unwrap().unwrap().aggregate_version, Some(101));
    assert_eq!(world.notes("a").await, (0..=100).collect::<Vec<_>>());
    node.stop().await;
}

#[tokio::test]
async fn r30_a_held_command_holds_up_only_its_own_aggregate() {
    let world = World::new();
    let node = world.on_threads(1).start().await;
    world.gates.close("door");
    let held = node.begin(hold("held", "door", 1));
    world.gates.reached("door", 1).await;
    let others = (0..200).map(|n| node.handle.submit(note(&format!("other-{n}"), n)));
    for answer in join_all(others).await {
        assert_eq!(code(&answer), "Ok");
    }
    assert!(!held.is_finished());
    world.gates.open("door");
    assert_eq!(code(&held.await.unwrap()), "Ok");
    node.stop().await;
}

#[tokio::test]
async fn r30_a_blocking_decide_runs_on_a_bounded_pool() {
    let world = World::new();
    let plan = world.on_threads(1).limits(|limits| limits.blocking = 2);
    let node = plan.start().await;
    world.gates.close("door");
    let block = |id: &str| {
        let gate = "door".to_owned();
        node.begin(to(id, Block { gate }).wait(Stage::Processed))
    };
    let blocked = [block("a"), block("b"), block("c")];
    world.gates.reached("door", 2).await;
    // The only arbiter is free, and the pool runs no third one.
    assert_eq!(code(&node.run(note("free", 1)).await), "Ok");
    assert_eq!(world.gates.came("door"), 2);
    world.gates.open("door");
    for answer in blocked {
        assert_eq!(code(&answer.await.unwrap()), "Ok");
    }
    node.stop().await;
}

#[test]
fn r30_a_command_within_its_own_chain_is_refused_without_a_deadlock() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        for path in [&["a"][..], &["b", "a"], &["b", "c", "b"], &["b", "c", "a"]] {
            let answer = node.run(relay("a", "", path)).await;
            assert_eq!(code(&answer), "wow.command.reentrant", "{path:?}");
        }
        assert_eq!(code(&node.run(relay("a", "", &["b", "c"])).await), "Ok");
        assert_eq!(node.in_flight(), 0.0);
        node.stop().await;
    });
}

#[test]
fn r30_a_circle_through_a_queue_is_refused_too() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        world.gates.close("b");
        let busy = node.begin(hold("b", "b", 1));
        world.gates.reached("b", 1).await;
        let circle = node.begin(relay("a", "", &["b", "a"]).wait(Stage::Processed));
        // It is behind the one that holds b.
        while node.in_flight() < 3.0 {
            tokio::task::yield_now().await;
        }
        world.gates.open("b");
        assert_eq!(code(&busy.await.unwrap()), "Ok");
        let answer = circle.await.unwrap();
        assert_eq!(code(&answer), "wow.command.reentrant");
        node.stop().await;
    });
}

#[test]
fn r35_two_chains_that_wait_for_each_other_end_with_the_decide_timeout() {
    paused(async {
        let world = World::new();
        let plan = world.here();
        let plan = plan.kernel(|kernel| kernel.decide_timeout = Duration::from_secs(5));
        let node = plan.start().await;
        world.gates.close("both");
        let one = node.begin(relay("a", "both", &["b"]).wait(Stage::Processed));
        let other = node.begin(relay("b", "both", &["a"]).wait(Stage::Processed));
        world.gates.reached("both", 2).await;
        world.gates.open("both");
        let codes = [code(&one.await.unwrap()), code(&other.await.unwrap())];
        // The one that gave up has let the other go on.
        assert!(
            codes.contains(&"wow.command.decide-timeout".to_owned()),
            "{codes:?}"
        );
        assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
        assert_eq!(code(&node.run(note("b", 1)).await), "Ok");
        node.stop().await;
    });
}
