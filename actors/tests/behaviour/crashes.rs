//! A node that is gone from one moment to the next, and another that goes on over its store
//! (R81, R83, R84).

use std::sync::atomic::Ordering;
use std::time::Duration;

use wow_kernel::faults::{Call, Fault, Faults, Moment, Rates};
use wow_kernel::ports::SnapshotStore;
use wow_kernel::wait::Stage;

use crate::sagas::{handled, hold_to, note_to, start};
use crate::support::{Node, Plan, World, code, key, note, pass, paused, to};

fn plan(world: &World) -> Plan {
    let plan = world.here().with_sagas();
    plan.kernel(|kernel| kernel.partitions = 1)
}

/// The node is dead: nothing of it reaches storage any more. What it had sent has happened.
fn kill(node: Node) {
    node.faults.always(&Call::ALL, Fault::Refuse);
    drop(node);
}

#[test]
fn r83_an_entry_takes_effect_once_wherever_the_node_crashes() {
    paused(async {
        let calls = [
            Call::Append,
            Call::FindRequest,
            Call::LoadHistory,
            Call::SaveCheckpoint,
            Call::SaveSnapshots,
        ];
        for call in calls {
            for moment in [Moment::Before, Moment::After] {
                // The crash comes at each call of the kind in turn, until one more never comes.
                for nth in 1.. {
                    if !crashes_at(call, moment, nth).await {
                        assert!(nth > 1, "{call:?} is never called");
                        break;
                    }
                }
            }
        }
    });
}

/// Crashes at the nth call of a kind, and checks what another node makes of it. `false` when
/// there is no nth.
async fn crashes_at(call: Call, moment: Moment, nth: u64) -> bool {
    let world = World::new();
    let node = plan(&world).start().await;
    let steps = || vec![note_to("a", 1), hold_to("b", 2), note_to("a", 3)];
    let committed = node.begin(handled(steps()).request_id("r-1"));
    let mut is_reached = true;
    for number in 1..=nth {
        let gate = node.faults.hold(call, moment);
        tokio::select! {
            biased;
            () = gate.reached() => {}
            () = pass(Duration::from_secs(5)) => {
                is_reached = false;
                break;
            }
        }
        if number < nth {
            gate.release();
        } else {
            // Held for good.
            std::mem::forget(gate);
        }
    }
    kill(node);
    committed.abort();

    let next = plan(&world).start().await;
    let answer = next.handle.submit(handled(steps()).request_id("r-1")).await;
    let place = format!("{call:?} {moment:?} {nth}");
    assert_eq!(code(&answer), "Ok", "{place}");
    assert_eq!(world.notes("a").await, [1, 3], "{place}");
    assert_eq!(world.notes("b").await, [2], "{place}");
    assert_eq!(world.commits("pump", "p").await.len(), 1, "{place}");
    // Snapshots catch up from the checkpoint.
    pass(Duration::from_secs(1)).await;
    let keys = [key("nasty", "a"), key("nasty", "b"), key("pump", "p")];
    assert_eq!(
        world.store.versions(&keys).await.unwrap(),
        [2, 1, 1],
        "{place}"
    );
    next.stop().await;
    is_reached
}

#[test]
fn r81_a_restarted_node_goes_on_from_its_checkpoints() {
    paused(async {
        let world = World::new();
        let node = plan(&world).start().await;
        for n in 0..10 {
            let answer = node.handle.submit(handled(vec![note_to("a", n)])).await;
            assert_eq!(code(&answer), "Ok");
        }
        node.stop().await;
        let handled_before = world.controls.handled.load(Ordering::SeqCst);
        assert_eq!(handled_before, 10);

        // In order, and nothing again.
        let node = plan(&world).start().await;
        let answer = node.handle.submit(handled(vec![note_to("a", 10)])).await;
        assert_eq!(code(&answer), "Ok");
        assert_eq!(world.controls.handled.load(Ordering::SeqCst), 11);
        assert_eq!(world.notes("a").await, (0..=10).collect::<Vec<_>>());
        node.stop().await;
    });
}

#[test]
fn r84_what_was_committed_while_nobody_followed_is_caught_up_with() {
    paused(async {
        let world = World::new();
        // Its runners see nothing of what it commits.
        let faults = Faults::new(std::sync::Arc::new(wow_actors::NodeClock::new()));
        faults.always(&[Call::SaveSnapshots], Fault::Refuse);
        let node = plan(&world).faults(&faults).start().await;
        for n in 0..700 {
            assert_eq!(code(&node.run(note(&(n % 3).to_string(), n)).await), "Ok");
        }
        assert_eq!(code(&node.run(start(vec![note_to("s", 1)])).await), "Ok");
        kill(node);

        let node = plan(&world).start().await;
        pass(Duration::from_secs(2)).await;
        let keys = ["0", "1", "2"].map(|id| key("nasty", id));
        assert_eq!(world.store.versions(&keys).await.unwrap(), [234, 233, 233]);
        assert_eq!(world.notes("s").await, [1]);
        // A cold lane knows the last requests from the snapshot, without asking for them (R41).
        let snapshot = world.store.find(&keys[0]).await.unwrap().unwrap();
        assert!(snapshot.recent_requests.is_some());
        let last = world.commits("nasty", "0").await;
        let finds = node.faults.calls(Call::FindRequest);
        for commit in &last[last.len() - 200..] {
            let again = to("0", crate::support::nasty::Note { n: 0 });
            let again = again.request_id(commit.request_id.as_str());
            let answer = node.handle.submit(again.wait(Stage::Processed)).await;
            assert!(answer.unwrap().duplicate);
        }
        assert_eq!(node.faults.calls(Call::FindRequest), finds);
        node.stop().await;
    });
}

#[test]
fn r54_unknown_outcomes_under_load_double_nothing() {
    paused(async {
        for seed in 0..5 {
            let world = World::new();
            let node = plan(&world).start().await;
            let rates = Rates {
                refuse: 0.1,
                busy: 0.05,
                lose_answer: 0.15,
                lose_call: 0.1,
                delay: 0.2,
                delay_answer: 0.1,
                delay_max: Duration::from_secs(3),
            };
            node.faults.at_random(seed, &Call::ALL, &rates);
            let steps = |n| vec![note_to("a", n), note_to("b", n)];
            for n in 0..30 {
                let request = || start(steps(n)).request_id(format!("r-{n}"));
                // As a client does: again with the same request id, until it is known.
                while let Err(error) = node.run(request()).await {
                    assert!(error.is_retryable(), "{error}");
                }
            }
            node.faults.heal();
            let last = node
                .handle
                .submit(handled(steps(30)).request_id("r-30"))
                .await;
            assert_eq!(code(&last), "Ok", "seed {seed}");
            for id in ["a", "b"] {
                let expected: Vec<u64> = (0..=30).collect();
                assert_eq!(world.notes(id).await, expected, "seed {seed}");
            }
            node.stop().await;
        }
    });
}
