//! SENT is answered when a lane has taken the command, and not where none has (R60).

use wow_kernel::error::{Bound, CommandError};
use wow_kernel::wait::Stage;

use crate::support::nasty::{Hold, TRANSFORMER_PANICS};
use crate::support::{World, code, error, note, paused, to};

#[test]
fn r60_sent_is_answered_once_a_lane_has_taken_the_command() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        world.gates.close("door");
        let gate = "door".to_owned();
        let held = node.begin(to("a", Hold { gate, n: 1 }));
        world.gates.reached("door", 1).await;
        let answer = node.handle.submit(note("a", 2).wait(Stage::Sent)).await;
        let sent = answer.unwrap();
        assert_eq!(sent.stage, Stage::Sent);
        assert_eq!(
            (sent.aggregate_id.as_str(), sent.aggregate_version),
            ("a", None)
        );
        assert_eq!(node.in_flight(), 2.0);
        world.gates.open("door");
        assert_eq!(code(&held.await.unwrap()), "Ok");
        node.stop().await;
    });
}

#[test]
fn r60_what_no_lane_has_taken_is_not_sent() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.lane_queue = 1);
        let node = plan.start().await;
        world.gates.close("door");
        let gate = "door".to_owned();
        let held = node.begin(to("a", Hold { gate, n: 1 }));
        world.gates.reached("door", 1).await;
        let full = node.handle.submit(note("a", 2).wait(Stage::Sent)).await;
        let bound = Bound::LaneQueue;
        assert_eq!(error(&full), Some(&CommandError::Busy { bound }));
        let unsent = note("a", TRANSFORMER_PANICS).wait(Stage::Sent);
        let unsent = node.handle.submit(unsent).await;
        assert_eq!(code(&unsent), "wow.command.panicked");
        world.gates.open("door");
        assert_eq!(code(&held.await.unwrap()), "Ok");
        assert_eq!(world.notes("a").await, [1]);
        node.stop().await;
    });
}
