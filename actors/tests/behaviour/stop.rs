//! A stop finishes what is in flight, answers whoever waits, and ends in time (R34).

use std::sync::Arc;
use std::time::Duration;

use wow_kernel::faults::{Call, Fault, Moment};
use wow_kernel::ports::{CheckpointStore, SnapshotStore};
use wow_kernel::wait::Stage;

use crate::support::nasty::{Hold, Never, Relay};
use crate::support::sagas::{Start, Step};
use crate::support::{World, code, key, note, pass, paused, to, until};

#[test]
fn r34_new_commands_are_refused_and_those_in_flight_finish() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        world.gates.close("door");
        let relay = Relay {
            path: vec!["b".to_owned()],
            gate: "door".to_owned(),
        };
        let deciding = node.begin(to("a", relay));
        let queued = node.begin(note("a", 2));
        world.gates.reached("door", 1).await;
        let (handle, gates) = (node.handle.clone(), world.gates.clone());
        let stopping = tokio::spawn(node.stop());
        until(|| !handle.is_accepting()).await;
        assert!(!handle.is_ready());
        let refused = handle.submit(note("c", 1)).await;
        assert_eq!(code(&refused), "wow.node.shutting-down");
        assert!(refused.is_err(), "it never became a command");

        // What is under way may still send.
        gates.open("door");
        for answer in [deciding, queued] {
            let answer = answer.await.unwrap().unwrap();
            assert!(answer.succeeded());
            assert_eq!(answer.stage, Stage::Snapshot);
        }
        assert_eq!(stopping.await.unwrap().unfinished, 0);
        let keys = [key("nasty", "a"), key("nasty", "b")];
        assert_eq!(world.store.versions(&keys).await.unwrap(), [2, 1]);
        let refused = handle.submit(note("c", 1)).await;
        assert_eq!(code(&refused), "wow.node.shutting-down");
    });
}

#[test]
fn r34_readiness_turns_false_before_commands_are_refused() {
    paused(async {
        let world = World::new();
        let plan = world.here();
        let plan = plan.limits(|limits| limits.drain_delay = Duration::from_secs(5));
        let node = plan.start().await;
        let handle = node.handle.clone();
        let before = tokio::time::Instant::now();
        let announcing = async {
            node.system.announce_stop().await;
            assert_eq!(before.elapsed(), Duration::from_secs(5));
        };
        let meanwhile = async {
            until(|| !handle.is_ready()).await;
            assert!(handle.is_accepting());
            assert_eq!(code(&handle.submit(note("a", 1)).await), "Ok");
        };
        tokio::join!(announcing, meanwhile);
        node.stop().await;
    });
}

#[test]
fn r34_checkpoints_are_saved_and_whoever_waits_is_answered() {
    paused(async {
        let world = World::new();
        let plan = world.here().with_sagas();
        let plan = plan.kernel(|kernel| kernel.partitions = 1);
        let node = plan.start().await;
        world.gates.close("door");
        let steps = vec![Step::Hold {
            to: "a".to_owned(),
            gate: "door".to_owned(),
            n: 1,
        }];
        // The saga has handled two entries, and is in the third.
        for _ in 0..2 {
            let steps = Vec::new();
            let start = to("p", Start { steps }).wait(Stage::SagaHandled);
            assert_eq!(code(&node.handle.submit(start).await), "Ok");
        }
        let waiting = node.begin(to("p", Start { steps }).wait(Stage::SagaHandled));
        world.gates.reached("door", 1).await;
        let written = node.begin(note("b", 1));
        let gates = world.gates.clone();
        let stopping = tokio::spawn(node.stop());
        pass(Duration::from_secs(1)).await;
        gates.open("door");
        assert_eq!(stopping.await.unwrap().unfinished, 0);
        assert_eq!(code(&written.await.unwrap()), "Ok");
        // The saga finished its entry, and its caller hears of it.
        assert_eq!(code(&waiting.await.unwrap()), "Ok");
        for (subscription, position) in [("mover", 3), ("watcher", 4), ("snapshot", 5)] {
            let saved = world
                .store
                .load(subscription, &[wow_kernel::id::PartitionNo(0)]);
            let saved = saved.await.unwrap();
            assert!(saved[0].position >= position, "{subscription}: {saved:?}");
        }
    });
}

#[test]
fn r34_a_wait_that_can_not_end_any_more_is_answered_with_what_is_known() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        node.faults.always(&[Call::SaveSnapshots], Fault::Refuse);
        let waiting = node.begin(note("a", 1));
        let committed = [("outcome", "committed")];
        until(|| node.metric("wow_commands_total", &committed) == 1.0).await;
        let before = tokio::time::Instant::now();
        node.stop().await;
        let answer = waiting.await.unwrap();
        assert!(before.elapsed() <= Duration::from_secs(10));
        assert_eq!(code(&answer), "wow.node.shutting-down");
        let answer = answer.unwrap();
        assert_eq!(
            (answer.committed, answer.aggregate_version),
            (true, Some(1))
        );
        assert_eq!(answer.stage, Stage::Processed);
    });
}

#[test]
fn r34_a_command_that_never_ends_does_not_hold_up_the_stop() {
    paused(async {
        let world = World::new();
        let plan = world.here();
        // The decide timeout would end it, only later.
        let plan = plan.kernel(|kernel| kernel.decide_timeout = Duration::from_secs(3600));
        let node = plan.start().await;
        world.gates.close("never");
        let gate = "never".to_owned();
        let never = node.begin(to("a", Never { gate }).timeout(Duration::from_secs(600)));
        let behind = node.begin(note("a", 1).timeout(Duration::from_secs(600)));
        world.gates.reached("never", 1).await;
        world.gates.open("never");
        let before = tokio::time::Instant::now();
        assert_eq!(node.stop().await.unfinished, 2);
        assert!(before.elapsed() <= Duration::from_secs(10));
        drop((never, behind));
    });
}

#[tokio::test]
async fn r34_threads_end_with_the_system_and_their_callers_are_answered() {
    let world = World::new();
    let plan = world.on_threads(2);
    let plan = plan.limits(|limits| limits.shutdown_timeout = Duration::from_millis(500));
    let node = plan.start().await;
    world.gates.close("never");
    let gate = "never".to_owned();
    let never = node.begin(to("a", Never { gate }).request_id("r-1"));
    let behind = node.begin(note("a", 1));
    let held = node.faults.hold(Call::SaveSnapshots, Moment::Before);
    let waiting = node.begin(note("b", 1));
    world.gates.reached("never", 1).await;
    held.reached().await;
    assert_eq!(node.stop().await.unfinished, 2);
    // None of them waits for its own deadline of thirty seconds.
    for answer in [never, behind, waiting] {
        assert_eq!(code(&answer.await.unwrap()), "wow.node.shutting-down");
    }
    assert!(world.notes("a").await.is_empty());
}

#[tokio::test]
async fn r34_a_stopped_system_leaves_nothing_behind() {
    for threads in [1, 2] {
        let world = World::new();
        let node = world.on_threads(threads).with_sagas().start().await;
        let steps = vec![Step::Note {
            to: "a".to_owned(),
            n: 1,
        }];
        let start = to("p", Start { steps }).wait(Stage::SagaHandled);
        assert_eq!(code(&node.handle.submit(start).await), "Ok");
        let relay = Relay {
            path: vec!["b".to_owned()],
            gate: String::new(),
        };
        assert_eq!(code(&node.handle.submit(to("c", relay)).await), "Ok");
        node.stop().await;
        // Every actor held the store.
        let World { store, .. } = world;
        assert_eq!(Arc::strong_count(&store), 1);
    }
}

#[test]
fn r34_nor_does_one_that_lived_on_its_callers_thread() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        assert_eq!(code(&node.handle.submit(note("a", 1)).await), "Ok");
        node.stop().await;
        // What was told to end does so in its turn.
        pass(Duration::from_secs(1)).await;
        let World { store, .. } = world;
        assert_eq!(Arc::strong_count(&store), 1);
    });
}

#[tokio::test]
async fn r34_no_command_slips_in_behind_a_stop() {
    for _ in 0..20 {
        let world = World::new();
        let node = world.on_threads(1).start().await;
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let handle = node.handle.clone();
                tokio::spawn(async move {
                    let mut committed = 0;
                    loop {
                        let request = note(&client.to_string(), 1).wait(Stage::Processed);
                        let answer = handle.submit(request).await;
                        match code(&answer).as_str() {
                            "Ok" => committed += 1,
                            "wow.node.shutting-down" => return (client, committed),
                            other => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        until(|| node.metric("wow_commands_total", &[]) > 100.0).await;
        assert_eq!(node.stop().await.unfinished, 0);
        for client in clients {
            let (client, committed) = client.await.unwrap();
            // Exactly what was acknowledged, and nothing that was refused.
            assert_eq!(world.notes(&client.to_string()).await.len(), committed);
        }
    }
}

#[test]
fn r34_a_gate_that_opens_late_changes_nothing_after_the_end() {
    paused(async {
        let world = World::new();
        let plan = world.here();
        let plan = plan.kernel(|kernel| kernel.decide_timeout = Duration::from_secs(3600));
        let node = plan.start().await;
        world.gates.close("door");
        let hold = Hold {
            gate: "door".to_owned(),
            n: 1,
        };
        let held = node.begin(to("a", hold).wait(Stage::Processed));
        let behind = node.begin(note("a", 2).wait(Stage::Processed));
        world.gates.reached("door", 1).await;
        node.stop().await;
        world.gates.open("door");
        // The one that had begun runs to its end; the one behind it is refused.
        assert_eq!(code(&held.await.unwrap()), "Ok");
        assert_eq!(code(&behind.await.unwrap()), "wow.node.shutting-down");
        assert_eq!(world.notes("a").await, [1]);
    });
}
