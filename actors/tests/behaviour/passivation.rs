//! Idle lanes go, and the least recently used beyond the bounds: memory is bounded (R33).

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use wow_kernel::faults::Call;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Grow, Hold, Look};
use crate::support::{World, code, note, pass, paused, to};

/// How many aggregates are touched, each once.
fn aggregates() -> u64 {
    match std::env::var_os("WOW_TEST_SLOW") {
        Some(_) => 2_000_000,
        None => 60_000,
    }
}

#[test]
fn r33_an_idle_lane_goes_after_its_time_and_not_before() {
    paused(async {
        let world = World::new();
        let plan = world.here();
        let plan = plan.limits(|limits| limits.idle_timeout = Duration::from_secs(60));
        let plan = plan.kernel(|kernel| kernel.decide_timeout = Duration::from_secs(600));
        let node = plan.start().await;
        world.gates.close("door");
        let gate = "door".to_owned();
        let hold = to("busy", Hold { gate, n: 1 }).timeout(Duration::from_secs(600));
        let held = node.begin(hold.wait(Stage::Processed));
        assert_eq!(code(&node.run(note("early", 1)).await), "Ok");
        pass(Duration::from_secs(20)).await;
        assert_eq!(code(&node.run(note("late", 1)).await), "Ok");
        assert_eq!(node.lanes(), 3.0);
        pass(Duration::from_secs(29)).await;
        assert_eq!(node.lanes(), 3.0);
        world.gates.open("door");
        assert_eq!(code(&held.await.unwrap()), "Ok");
        // Idle ones are looked for four times in that time.
        pass(Duration::from_secs(30)).await;
        assert_eq!(node.metric("wow_lanes", &[("state", "idle")]), 1.0);
        pass(Duration::from_secs(60)).await;
        assert_eq!(
            (node.lanes(), node.metric("wow_state_bytes", &[])),
            (0.0, 0.0)
        );
        // A lane that comes again starts from storage.
        let loads = node.faults.calls(Call::LoadHistory);
        let answer = node.run(note("early", 2)).await.unwrap();
        assert_eq!(answer.aggregate_version, Some(2));
        assert_eq!(node.faults.calls(Call::LoadHistory), loads + 1);
        node.stop().await;
    });
}

#[test]
fn r33_the_least_recently_used_lanes_go_first() {
    paused(async {
        let world = World::new();
        let plan = world.here().kernel(|kernel| kernel.partitions = 1);
        let plan = plan.limits(|limits| limits.live_aggregates = 10);
        let node = plan.start().await;
        for n in 0..10 {
            assert_eq!(code(&node.run(note(&n.to_string(), 1)).await), "Ok");
        }
        // The oldest is used again, so the next two go in its place.
        for id in ["0", "x", "y"] {
            assert_eq!(code(&node.run(note(id, 1)).await), "Ok");
        }
        assert_eq!(node.lanes(), 10.0);
        let loads = node.faults.calls(Call::LoadHistory);
        for id in ["0", "3", "9", "x", "y"] {
            assert_eq!(code(&node.run(to(id, Look {})).await), "Ok");
        }
        assert_eq!(node.faults.calls(Call::LoadHistory), loads);
        for id in ["1", "2"] {
            assert_eq!(code(&node.run(to(id, Look {})).await), "Ok");
        }
        assert_eq!(node.faults.calls(Call::LoadHistory), loads + 2);
        node.stop().await;
    });
}

#[test]
fn r33_however_many_aggregates_are_touched_only_so_many_live() {
    paused(async {
        let world = World::new();
        let plan = world.here().kernel(|kernel| kernel.partitions = 16);
        let plan = plan.limits(|limits| limits.live_aggregates = 500);
        let node = plan.start().await;
        let mut commands = stream::iter(0..aggregates())
            .map(|n| node.run(to(&n.to_string(), Look {})))
            .buffer_unordered(64);
        let mut done = 0_u64;
        while let Some(answer) = commands.next().await {
            assert_eq!(code(&answer), "Ok");
            done += 1;
            if done.is_multiple_of(1000) {
                assert!(node.lanes() <= 500.0 + 64.0, "{}", node.lanes());
            }
        }
        drop(commands);
        assert!(node.lanes() <= 500.0);
        node.stop().await;
    });
}

#[test]
fn r33_states_together_take_only_so_many_bytes() {
    const BOUND: usize = 2_000_000;

    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.state_bytes = BOUND);
        let node = plan.start().await;
        // Each takes some 30 kB, so that about sixty fit, wherever they lie.
        for n in 0..500 {
            let grow = to(&n.to_string(), Grow { bytes: 10_000 });
            assert_eq!(code(&node.run(grow).await), "Ok");
            let bytes = node.metric("wow_state_bytes", &[]);
            assert!(bytes <= BOUND as f64 + 40_000.0, "{bytes}");
        }
        assert!(node.lanes() > 30.0, "{}", node.lanes());
        node.stop().await;
    });
}

#[test]
fn r33_lanes_that_grow_make_others_go() {
    const BOUND: usize = 2_000_000;

    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.state_bytes = BOUND);
        let node = plan.start().await;
        let small = (0..200).map(|n| node.run(note(&n.to_string(), 1)));
        join_all(small).await;
        assert_eq!(node.lanes(), 200.0);
        // No lane is new from here on; the small ones are of other partitions too.
        for step in 1..40 {
            let grow = to(
                "0",
                Grow {
                    bytes: 20_000 * step,
                },
            );
            assert_eq!(code(&node.run(grow).await), "Ok");
        }
        assert!(node.lanes() < 200.0);
        // The one that is too large alone stays while it is used, and goes when it is idle.
        let bytes = node.metric("wow_state_bytes", &[]);
        assert!(bytes >= BOUND as f64, "{bytes}");
        pass(Duration::from_secs(60)).await;
        assert!(node.metric("wow_state_bytes", &[]) < BOUND as f64);
        node.stop().await;
    });
}
