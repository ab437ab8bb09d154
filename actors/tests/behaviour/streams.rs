//! A stream tells every stage as it comes (R64).

use std::time::Duration;

use tokio::sync::mpsc;
use wow_kernel::faults::{Call, Moment};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Look, Reject, TRANSFORMER_PANICS};
use crate::support::sagas::{Start, Step};
use crate::support::{Answer, World, code, note, pass, paused, to, until};

async fn all(mut stream: mpsc::Receiver<Answer>) -> Vec<(Option<Stage>, String)> {
    let mut told = Vec::new();
    while let Some(answer) = stream.recv().await {
        let code = code(&answer);
        told.push((answer.ok().map(|result| result.stage), code));
    }
    told
}

fn fine(stages: &[Stage]) -> Vec<(Option<Stage>, String)> {
    let told = stages.iter();
    told.map(|stage| (Some(*stage), "Ok".to_owned())).collect()
}

#[test]
fn r64_every_stage_is_told_in_order() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        let told = |submission: Submission| all(node.handle.stream(submission));
        let (sent, processed, snapshot) = (Stage::Sent, Stage::Processed, Stage::Snapshot);
        assert_eq!(told(note("a", 1).wait(sent)).await, fine(&[sent]));
        let until_processed = told(note("a", 1).wait(processed)).await;
        assert_eq!(until_processed, fine(&[sent, processed]));
        for n in 0..50 {
            let until_snapshot = told(note("a", n)).await;
            assert_eq!(until_snapshot, fine(&[sent, processed, snapshot]));
        }
        let looked = told(to("a", Look {})).await;
        assert_eq!(looked, fine(&[sent, processed]));
        node.stop().await;
    });
}

#[test]
fn r64_a_saga_is_told_of_as_it_comes() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        world.gates.close("door");
        let steps = vec![Step::Hold {
            to: "a".to_owned(),
            gate: "door".to_owned(),
            n: 1,
        }];
        let start = to("p", Start { steps }).wait(Stage::SagaHandled);
        let mut stream = node.handle.stream(start);
        let mut told = Vec::new();
        // The watcher is done, and the snapshot is written, while the mover's command is held.
        while told.len() < 4 {
            told.push(stream.recv().await.unwrap().unwrap().stage);
        }
        assert_eq!(told[..2], [Stage::Sent, Stage::Processed]);
        assert!(told.contains(&Stage::Snapshot) && told.contains(&Stage::SagaHandled));
        world.gates.open("door");
        let last = stream.recv().await.unwrap().unwrap();
        assert_eq!(
            (last.stage, &*last.function.processor),
            (Stage::SagaHandled, "mover")
        );
        assert!(stream.recv().await.is_none());
        node.stop().await;
    });
}

#[test]
fn r64_a_failure_is_the_last_that_is_told() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.in_flight = 1);
        let node = plan.start().await;
        let told = |submission: Submission| all(node.handle.stream(submission));
        let no = "nasty.no".to_owned();
        let rejected = told(to("a", Reject { code: no.clone() })).await;
        let sent = (Some(Stage::Sent), "Ok".to_owned());
        assert_eq!(rejected, [sent, (Some(Stage::Processed), no)]);
        // What never became a command has no stage.
        let refused = told(note("a", TRANSFORMER_PANICS)).await;
        assert_eq!(refused, [(None, "wow.command.panicked".to_owned())]);
        let gate = node.faults.hold(Call::Append, Moment::Before);
        let held = node.begin(note("a", 1));
        gate.reached().await;
        let busy = told(note("a", 2)).await;
        assert_eq!(busy, [(None, "wow.command.busy".to_owned())]);
        gate.release();
        assert_eq!(code(&held.await.unwrap()), "Ok");
        node.stop().await;
    });
}

#[test]
fn r64_a_dropped_stream_ends_its_wait_and_nothing_else() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.waiters = 1);
        let node = plan.start().await;
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let mut stream = node.handle.stream(note("a", 1));
        for expected in [Stage::Sent, Stage::Processed] {
            assert_eq!(stream.recv().await.unwrap().unwrap().stage, expected);
        }
        gate.reached().await;
        drop(stream);
        pass(Duration::from_secs(2)).await;
        assert_eq!((node.waits_open(), node.in_flight()), (0.0, 0.0));
        let next = node.begin(note("a", 2));
        gate.release();
        assert_eq!(code(&next.await.unwrap()), "Ok");

        // Before its command has even run.
        let gate = node.faults.hold(Call::Append, Moment::Before);
        drop(node.handle.stream(note("a", 3)));
        gate.reached().await;
        gate.release();
        until(|| node.in_flight() == 0.0).await;
        assert_eq!(world.notes("a").await, [1, 2, 3]);
        node.stop().await;
    });
}
