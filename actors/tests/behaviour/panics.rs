//! A panic fails its own command and nothing else (R32).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use wow_kernel::error::CommandError;
use wow_kernel::faults::{Call, Moment};
use wow_kernel::ports::Isolation;
use wow_kernel::registry::DecideOutcome;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Bear, Block, Explode, Rig, TRANSFORMER_PANICS};
use crate::support::{World, code, error, note, paused, to};

#[test]
fn r32_a_panic_in_users_code_fails_that_command_and_the_lane_goes_on() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        for (n, how) in (1..).zip(["decide", "later", "hook", "evolve"]) {
            let explode = Explode {
                how: how.to_owned(),
            };
            let exploding = node.begin(to("a", explode));
            let behind = node.begin(note("a", n).wait(Stage::Processed));
            assert_eq!(
                code(&exploding.await.unwrap()),
                "wow.command.panicked",
                "{how}"
            );
            let answer = behind.await.unwrap().unwrap();
            assert_eq!(answer.aggregate_version, Some(n), "{how}");
            assert_eq!((node.lanes(), node.in_flight()), (1.0, 0.0));
        }
        assert_eq!(world.notes("a").await, [1, 2, 3, 4]);
        node.stop().await;
    });
}

#[test]
fn r32_a_panic_before_a_lane_has_the_command_fails_it_alone() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let panicked = node.run(note("a", TRANSFORMER_PANICS)).await;
        assert_eq!(code(&panicked), "wow.command.panicked");
        assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
        assert_eq!(node.in_flight(), 0.0);
        assert!(node.handle.is_ready());
        node.stop().await;
    });
}

#[test]
fn r32_a_first_state_that_panics_fails_every_command_and_no_other_aggregate() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        for _ in 0..2 {
            let answer = node.run(to("s", Bear {})).await;
            assert_eq!(code(&answer), "wow.command.panicked");
        }
        let unnamed = wow_kernel::submission::Submission::typed(Bear {});
        assert_eq!(code(&node.run(unnamed).await), "wow.command.panicked");
        assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
        node.stop().await;
    });
}

#[test]
fn r32_a_state_that_cannot_be_written_costs_neither_its_lane_nor_another_snapshot() {
    paused(async {
        for how in ["panics", "fails"] {
            let world = World::new();
            let plan = world.here().kernel(|kernel| kernel.partitions = 1);
            let node = plan.start().await;
            // Both are in one batch.
            let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
            let first = node.begin(note("first", 1));
            gate.reached().await;
            let rig = Rig {
                how: how.to_owned(),
            };
            let rigged = node.begin(to("rigged", rig));
            let other = node.begin(note("other", 1));
            gate.release();
            assert_eq!(code(&first.await.unwrap()), "Ok");
            assert_eq!(code(&other.await.unwrap()), "Ok", "{how}");
            // The commit stands, and its caller is told at once that no snapshot holds it.
            let rigged = rigged.await.unwrap();
            assert_eq!(error(&rigged), Some(&CommandError::Internal), "{how}");
            let rigged = rigged.unwrap();
            assert_eq!((rigged.committed, rigged.stage), (true, Stage::Snapshot));

            let answer = node.run(note("rigged", 2)).await;
            assert_eq!(answer.unwrap().aggregate_version, Some(2));
            // Once it can be written again, it is.
            let mend = Rig {
                how: "fine".to_owned(),
            };
            assert_eq!(code(&node.handle.submit(to("rigged", mend)).await), "Ok");
            node.stop().await;
        }
    });
}

/// What no code of the kernel's catches.
struct Broken;

impl Isolation for Broken {
    fn run(&self, _decide: BoxFuture<'static, DecideOutcome>) -> BoxFuture<'static, DecideOutcome> {
        panic!("the isolation panics")
    }
}

#[test]
fn r32_a_panic_of_the_systems_own_leaves_the_lane_alive_and_promises_nothing() {
    paused(async {
        let world = World::new();
        let mut plan = world.here();
        plan.isolation = Some(Arc::new(Broken));
        let node = plan.start().await;
        assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
        let gate = String::new();
        let broken = node.begin(to("a", Block { gate }));
        let behind = node.begin(note("a", 2).wait(Stage::Processed));
        // Nobody knows how far it came; storage was asked, and has no such commit.
        assert_eq!(code(&broken.await.unwrap()), "wow.command.outcome-unknown");
        assert_eq!(code(&behind.await.unwrap()), "Ok");
        assert_eq!(world.notes("a").await, [1, 2]);
        assert_eq!((node.lanes(), node.in_flight()), (1.0, 0.0));
        node.stop().await;
    });
}
