//! Every bound is reached at once, says which it is, and gives its places back (R31, R66).

use std::time::Duration;

use wow_kernel::error::{Bound, CommandError};
use wow_kernel::faults::{Call, Moment};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::support::nasty::{Hold, Look, Reject, Relay};
use crate::support::{Answer, World, code, error, note, pass, paused, to, until};

fn hold(id: &str, gate: &str) -> Submission {
    let hold = Hold {
        gate: gate.to_owned(),
        n: 1,
    };
    to(id, hold).wait(Stage::Processed)
}

fn is_busy(answer: &Answer, bound: Bound) -> bool {
    error(answer) == Some(&CommandError::Busy { bound })
}

#[test]
fn r31_a_full_lane_refuses_at_once_and_says_which_bound() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.lane_queue = 3);
        let node = plan.start().await;
        world.gates.close("door");
        let held = node.begin(hold("a", "door"));
        let queued = [node.begin(hold("a", "-")), node.begin(hold("a", "-"))];
        world.gates.reached("door", 1).await;

        let before = tokio::time::Instant::now();
        let refused = node.handle.submit(note("a", 4)).await;
        assert!(is_busy(&refused, Bound::LaneQueue), "{refused:?}");
        assert_eq!(before.elapsed(), Duration::ZERO);
        let reason = [("reason", "lane_queue")];
        assert_eq!(node.metric("wow_commands_refused_total", &reason), 1.0);
        assert_eq!(code(&node.run(note("b", 1)).await), "Ok");

        world.gates.open("door");
        assert_eq!(code(&held.await.unwrap()), "Ok");
        for answer in queued {
            assert_eq!(code(&answer.await.unwrap()), "Ok");
        }
        assert_eq!(code(&node.run(note("a", 4)).await), "Ok");
        node.stop().await;
    });
}

#[test]
fn r31_a_full_node_refuses_at_once_and_keeps_a_reserve_for_what_is_under_way() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.in_flight = 32);
        let node = plan.start().await;
        world.gates.close("door");
        world.gates.close("relay");
        let relay = Relay {
            path: vec!["z".to_owned()],
            gate: "relay".to_owned(),
        };
        let relaying = node.begin(to("r", relay).wait(Stage::Processed));
        let held: Vec<_> = (0..29)
            .map(|n| node.begin(hold(&n.to_string(), "door")))
            .collect();
        world.gates.reached("door", 29).await;
        world.gates.reached("relay", 1).await;

        let refused = node.handle.submit(note("x", 1)).await;
        assert!(is_busy(&refused, Bound::InFlight), "{refused:?}");
        assert_eq!(node.in_flight(), 30.0);
        // What a command function sends draws on the reserve.
        world.gates.open("relay");
        assert_eq!(code(&relaying.await.unwrap()), "Ok");
        assert_eq!(code(&node.run(note("x", 1)).await), "Ok");

        world.gates.open("door");
        for answer in held {
            assert_eq!(code(&answer.await.unwrap()), "Ok");
        }
        assert_eq!(node.in_flight(), 0.0);
        node.stop().await;
    });
}

#[test]
fn r31_a_permit_covers_the_command_and_never_the_wait() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.in_flight = 16);
        let node = plan.start().await;
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let mut waiting = Vec::new();
        for n in 0..100 {
            waiting.push(node.begin(note("a", n)));
            let committed = [("outcome", "committed")];
            until(|| node.metric("wow_commands_total", &committed) > n as f64).await;
        }
        assert_eq!(node.in_flight(), 0.0);
        assert!(waiting.iter().all(|answer| !answer.is_finished()));
        gate.release();
        for answer in waiting {
            assert_eq!(code(&answer.await.unwrap()), "Ok");
        }
        node.stop().await;
    });
}

#[test]
fn r31_whoever_has_an_answer_finds_its_places_free() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| {
            limits.in_flight = 1;
            limits.lane_queue = 1;
            limits.waiters = 1;
        });
        let node = plan.start().await;
        let code_of = |submission| async { code(&node.handle.submit(submission).await) };
        for n in 0..50 {
            assert_eq!(code_of(note("a", n)).await, "Ok");
            assert_eq!(code_of(note("a", n).wait(Stage::Processed)).await, "Ok");
            assert_eq!(code_of(to("a", Look {})).await, "Ok");
            let no = "nasty.no".to_owned();
            assert_eq!(code_of(to("a", Reject { code: no })).await, "nasty.no");
            let odd = to("", Look {});
            assert_eq!(code_of(odd).await, "wow.command.identity-invalid");
        }
        node.stop().await;
    });
}

#[test]
fn r31_a_command_whose_deadline_passed_in_the_queue_is_not_decided() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        world.gates.close("door");
        let held = node.begin(hold("a", "door"));
        world.gates.reached("door", 1).await;
        let impatient = note("a", 2).timeout(Duration::from_secs(1));
        let late = node.begin(impatient.wait(Stage::Processed));
        let patient = node.begin(note("a", 3).wait(Stage::Processed));

        let late = late.await.unwrap();
        assert_eq!(code(&late), "wow.command.timeout");
        assert!(!late.unwrap().committed);
        pass(Duration::from_secs(1)).await;
        world.gates.open("door");
        assert_eq!(code(&held.await.unwrap()), "Ok");
        assert_eq!(code(&patient.await.unwrap()), "Ok");
        assert_eq!(world.notes("a").await, [1, 3]);
        node.stop().await;
    });
}

#[test]
fn r66_waiters_are_bounded_and_none_leaks() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.waiters = 5);
        let node = plan.start().await;
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let mut waiting: Vec<_> = (0..5).map(|n| node.begin(note("a", n))).collect();
        gate.reached().await;
        let refused = node.handle.submit(note("a", 5)).await;
        assert!(is_busy(&refused, Bound::Waiters), "{refused:?}");
        assert_eq!(code(&node.run(note("a", 5)).await), "Ok");

        // One that goes away leaves its place to the next.
        waiting[0].abort();
        assert!((&mut waiting[0]).await.unwrap_err().is_cancelled());
        waiting[0] = node.begin(note("a", 6));
        gate.release();
        for answer in waiting {
            assert_eq!(code(&answer.await.unwrap()), "Ok");
        }
        // Those whose caller went are removed every second.
        pass(Duration::from_secs(2)).await;
        assert_eq!(node.waits_open(), 0.0);
        node.stop().await;
    });
}

#[test]
fn r66_callers_that_come_and_go_do_not_pile_up() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.waiters = 10);
        let node = plan.start().await;
        let no = || Reject {
            code: "nasty.no".to_owned(),
        };
        // Each leaves a wait behind that nothing will signal, and no time passes for a sweep.
        for _ in 0..5000 {
            assert_eq!(code(&node.handle.submit(to("a", no())).await), "nasty.no");
        }
        assert!(node.waits_open() <= 1024.0, "{}", node.waits_open());
        node.stop().await;
    });
}
