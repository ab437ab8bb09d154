//! Waits for sagas, and for what nothing here can ever reach (R61, R63).

use std::time::Duration;

use wow_kernel::submission::Submission;
use wow_kernel::wait::{Stage, StageFilter};

use crate::support::sagas::{Start, Step};
use crate::support::{World, code, note, pass, paused, to};

fn start(steps: Vec<Step>) -> Submission {
    to("p", Start { steps }).wait(Stage::SagaHandled)
}

fn held(gate: &str) -> Vec<Step> {
    vec![Step::Hold {
        to: "a".to_owned(),
        gate: gate.to_owned(),
        n: 7,
    }]
}

fn of(mut submission: Submission, processor: &str) -> Submission {
    submission.wait.filter.processor = Some(processor.to_owned());
    submission
}

#[test]
fn r61_without_a_name_every_saga_must_have_handled_the_commit() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        world.gates.close("door");
        let waiting = node.begin(start(held("door")));
        world.gates.reached("door", 1).await;
        pass(Duration::from_secs(3)).await;
        assert!(!waiting.is_finished());
        world.gates.open("door");
        let answer = waiting.await.unwrap().unwrap();
        assert_eq!(answer.stage, Stage::SagaHandled);
        assert_eq!(world.notes("a").await, [7]);
        pass(Duration::from_secs(2)).await;
        assert_eq!(node.waits_open(), 0.0);
        node.stop().await;
    });
}

#[test]
fn r61_a_named_saga_is_waited_for_alone() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        world.gates.close("door");
        let answer = node.handle.submit(of(start(held("door")), "watcher")).await;
        let answer = answer.unwrap();
        assert_eq!(answer.stage, Stage::SagaHandled);
        assert_eq!(&*answer.function.processor, "watcher");
        assert!(world.notes("a").await.is_empty());
        world.gates.open("door");
        node.stop().await;
    });
}

#[test]
fn r61_a_stage_that_nothing_can_reach_is_refused_at_admission() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        let started = || start(Vec::new());
        let mut with_tail = started();
        with_tail.wait.tail = Some((Stage::Snapshot, StageFilter::default()));
        let mut elsewhere = started();
        elsewhere.wait.filter.context = Some("elsewhere".to_owned());
        let mut function = started();
        function.wait.filter.function = Some("unknown".to_owned());
        for refused in [
            started().wait(Stage::Projected),
            started().wait(Stage::EventHandled),
            note("a", 1).wait(Stage::SagaHandled),
            of(started(), "nobody"),
            elsewhere,
            function,
            with_tail,
        ] {
            let answer = node.handle.submit(refused).await;
            assert_eq!(code(&answer), "wow.wait.stage-unavailable");
            assert!(answer.is_err(), "it never became a command");
        }
        assert!(world.commits("pump", "p").await.is_empty());
        assert_eq!((node.in_flight(), node.waits_open()), (0.0, 0.0));
        node.stop().await;
    });
}

#[test]
fn r63_what_sagas_have_long_handled_is_found_in_their_checkpoints() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        let request = || start(Vec::new()).request_id("r-1");
        assert_eq!(code(&node.handle.submit(request()).await), "Ok");
        // Checkpoints are saved a moment later.
        pass(Duration::from_secs(1)).await;
        let before = tokio::time::Instant::now();
        let again = node.handle.submit(request()).await.unwrap();
        assert_eq!((again.duplicate, again.stage), (true, Stage::SagaHandled));
        assert_eq!(before.elapsed(), Duration::ZERO);
        node.stop().await;
    });
}
