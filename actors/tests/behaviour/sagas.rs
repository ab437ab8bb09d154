//! Sagas: each command of an entry takes effect once, whatever fails on the way (R81, R83).

use std::sync::atomic::Ordering;
use std::time::Duration;

use wow_kernel::faults::{Call, Fault, Moment};
use wow_kernel::id::PartitionNo;
use wow_kernel::ports::{CheckpointStore, CommitLog};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::support::nasty::LENIENT;
use crate::support::sagas::{Start, Step};
use crate::support::{World, code, note, pass, paused, to, until};

pub fn note_to(id: &str, n: u64) -> Step {
    let to = id.to_owned();
    Step::Note { to, n }
}

/// One that asks storage for its request before it decides.
pub fn hold_to(id: &str, n: u64) -> Step {
    Step::Hold {
        to: id.to_owned(),
        gate: String::new(),
        n,
    }
}

pub fn start(steps: Vec<Step>) -> Submission {
    to("p", Start { steps })
}

pub fn handled(steps: Vec<Step>) -> Submission {
    start(steps).wait(Stage::SagaHandled)
}

#[test]
fn r83_an_entrys_commands_are_sent_in_order_with_request_ids_of_its_place() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        let steps = (1..=5).map(|n| note_to("a", n)).collect();
        let answer = node.handle.submit(handled(steps)).await.unwrap();
        assert_eq!(answer.stage, Stage::SagaHandled);
        assert_eq!(world.notes("a").await, [1, 2, 3, 4, 5]);
        let started = &world.commits("pump", "p").await[0];
        let place = format!("{}:{}", started.partition, started.position);
        for (index, commit) in world.commits("nasty", "a").await.iter().enumerate() {
            let id = format!("wow:s:test:mover:{place}:{index}");
            assert_eq!(commit.request_id.as_str(), id);
        }
        node.stop().await;
    });
}

#[test]
fn r83_what_fails_is_tried_again_with_growing_pauses_until_it_is_done() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        assert_eq!(code(&node.handle.submit(start(Vec::new())).await), "Ok");
        let faults = [
            Fault::None,
            Fault::Refuse,
            Fault::Refuse,
            Fault::LoseCall,
            Fault::LoseAnswer,
            Fault::Refuse,
        ];
        node.faults.script(Call::Append, faults);
        let before = tokio::time::Instant::now();
        let steps = vec![note_to("a", 1), note_to("b", 2), note_to("a", 3)];
        assert_eq!(code(&node.handle.submit(handled(steps)).await), "Ok");
        // Two pauses before the first command, and a longer one before a later one.
        assert!(before.elapsed() >= Duration::from_millis(50 + 100 + 200));
        assert!(before.elapsed() <= Duration::from_secs(2));
        assert_eq!(world.notes("a").await, [1, 3]);
        assert_eq!(world.notes("b").await, [2]);
        let failures = [("subscription", "mover")];
        assert_eq!(
            node.metric("wow_subscription_failures_total", &failures),
            3.0
        );
        node.stop().await;
    });
}

#[test]
fn r83_a_refusal_is_put_to_the_saga_and_its_answer_is_sent() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        let rejected = |answer| Step::Reject {
            to: "a".to_owned(),
            answer,
        };
        let steps = vec![note_to("a", 1), rejected(Some(2)), note_to("a", 3)];
        assert_eq!(code(&node.handle.submit(handled(steps)).await), "Ok");
        assert_eq!(world.notes("a").await, [1, 2, 3]);
        let labels = [("subscription", "mover")];
        let unanswered = || node.metric("wow_saga_rejections_total", &labels);
        assert_eq!(unanswered(), 0.0);

        // Without an answer it is counted, and the saga goes on.
        let steps = vec![rejected(None), note_to("a", 4)];
        assert_eq!(code(&node.handle.submit(handled(steps)).await), "Ok");
        assert_eq!(world.notes("a").await, [1, 2, 3, 4]);
        assert_eq!(unanswered(), 1.0);
        node.stop().await;
    });
}

#[test]
fn r83_what_was_refused_and_answered_is_never_sent_again() {
    paused(async {
        let world = World::new();
        let plan = world.here().with_sagas();
        let plan = plan.kernel(|kernel| kernel.partitions = 1);
        let node = plan.start().await;
        let gate = node.faults.hold(Call::Append, Moment::Before);
        let rejected = Step::Reject {
            to: "a".to_owned(),
            answer: Some(1),
        };
        let waiting = node.begin(handled(vec![rejected, note_to("b", 2)]));
        gate.reached().await;
        gate.release();
        // The answer to the refusal is on its way; the command after it will fail once, and the
        // refused one would be taken now.
        let answering = node.faults.hold(Call::Append, Moment::Before);
        answering.reached().await;
        world.gates.be_lenient();
        node.faults.script(Call::Append, [Fault::Refuse]);
        answering.release();
        assert_eq!(code(&waiting.await.unwrap()), "Ok");
        assert_eq!(world.notes("a").await, [1]);
        assert!(!world.notes("a").await.contains(&LENIENT));
        assert_eq!(world.notes("b").await, [2]);
        // Nor after a crash: the checkpoint has passed the entry already.
        let saved = world.store.load("mover", &[PartitionNo(0)]).await.unwrap();
        assert_eq!(saved[0].position, 1);
        node.stop().await;
    });
}

#[test]
fn r83_a_saga_that_panics_is_tried_again() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        world.controls.panics.store(true, Ordering::SeqCst);
        let waiting = node.begin(handled(vec![note_to("a", 1)]));
        until(|| world.controls.handled.load(Ordering::SeqCst) == 1).await;
        pass(Duration::from_secs(5)).await;
        assert!(world.controls.handled.load(Ordering::SeqCst) > 3);
        assert!(!waiting.is_finished());
        world.controls.panics.store(false, Ordering::SeqCst);
        assert_eq!(code(&waiting.await.unwrap()), "Ok");
        assert_eq!(world.notes("a").await, [1]);
        node.stop().await;
    });
}

#[test]
fn r50_an_unreadable_event_stops_the_saga_there_and_nobody_else() {
    paused(async {
        let world = World::new();
        let plan = || {
            let plan = world.here().with_sagas();
            plan.kernel(|kernel| kernel.partitions = 1)
        };
        let node = plan().start().await;
        assert_eq!(code(&node.handle.submit(start(Vec::new())).await), "Ok");
        node.stop().await;
        // As a node of a later version would have written it.
        let mut commit = world.commits("pump", "p").await.remove(0);
        commit.version = 2;
        commit.request_id = wow_kernel::id::RequestId::trusted("later");
        let mut events = commit.events.to_vec();
        events[0].revision = 9;
        commit.events = events.into();
        world
            .store
            .append(std::sync::Arc::new(commit))
            .await
            .unwrap();

        let node = plan().start().await;
        let failures = [("subscription", "mover")];
        let failed = || node.metric("wow_subscription_failures_total", &failures);
        while failed() < 3.0 {
            pass(Duration::from_secs(1)).await;
        }
        let saved = world.store.load("mover", &[PartitionNo(0)]).await.unwrap();
        assert_eq!(saved[0].position, 1);
        // The aggregate itself can't be loaded either; the others go on.
        let unreadable = node.run(start(Vec::new())).await;
        assert_eq!(code(&unreadable), "wow.log.event-unreadable");
        assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
        node.stop().await;
    });
}

#[test]
fn r81_checkpoints_that_can_not_be_saved_are_not_tried_in_a_loop() {
    paused(async {
        let world = World::new();
        let plan = world.here().with_sagas();
        let plan = plan.kernel(|kernel| kernel.partitions = 1);
        let node = plan.start().await;
        node.faults.always(&[Call::SaveCheckpoint], Fault::Refuse);
        for n in 0..600 {
            assert_eq!(code(&node.handle.submit(note("a", n)).await), "Ok");
        }
        let before = node.faults.calls(Call::SaveCheckpoint);
        pass(Duration::from_secs(10)).await;
        let tries = node.faults.calls(Call::SaveCheckpoint) - before;
        // Three subscriptions, each every half second.
        assert!(tries <= 3 * 21, "{tries}");
        node.faults.heal();
        pass(Duration::from_secs(1)).await;
        for subscription in ["snapshot", "mover", "watcher"] {
            let saved = world.store.load(subscription, &[PartitionNo(0)]).await;
            assert_eq!(saved.unwrap()[0].position, 600, "{subscription}");
        }
        node.stop().await;
    });
}
