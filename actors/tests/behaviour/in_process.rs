//! Actors of the same process ask admission with a message (spec/02, Facade).

use std::time::Duration;

use futures_util::future::join_all;
use wow_actors::Submit;
use wow_kernel::error::CommandError;
use wow_kernel::faults::{Call, Moment};
use wow_kernel::wait::Stage;

use crate::support::nasty::{Note, Reject};
use crate::support::{World, note, pass, paused, to, until};

#[test]
fn an_actor_asks_and_is_answered() {
    paused(async {
        let world = World::new();
        let node = world.here().start().await;
        let admission = node.handle.admission().unwrap();
        let answer = admission.send(Submit::new(Note { n: 1 })).await.unwrap();
        assert_eq!(answer.unwrap().stage, Stage::Snapshot);
        let no = "nasty.no".to_owned();
        let rejected = admission.send(Submit(to("a", Reject { code: no }))).await;
        assert!(matches!(rejected, Ok(Err(CommandError::Rejected(_)))));
        node.stop().await;
        let closed = admission.send(Submit::new(Note { n: 1 })).await;
        assert!(closed.is_err());
    });
}

#[tokio::test]
async fn a_thousand_that_wait_do_not_slow_each_other_down() {
    let world = World::new();
    let node = world.on_threads(1).start().await;
    let admission = node.handle.admission().unwrap();
    let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
    let first = admission.send(Submit(note("a", 0)));
    let others = (1..3000).map(|n| admission.send(Submit(note(&(n % 50).to_string(), n))));
    let asking = async {
        let (first, others) = tokio::join!(first, join_all(others));
        others.into_iter().chain([first])
    };
    let opening = async {
        let committed = [("outcome", "committed")];
        until(|| node.metric("wow_commands_total", &committed) >= 3000.0).await;
        gate.release();
    };
    let (answers, ()) = tokio::join!(asking, opening);
    for answer in answers {
        assert!(answer.unwrap().unwrap().succeeded());
    }
    node.stop().await;
}

#[test]
fn r66_an_asking_actor_that_goes_away_ends_its_wait_and_not_its_command() {
    paused(async {
        let world = World::new();
        let plan = world.here().limits(|limits| limits.waiters = 1);
        let node = plan.start().await;
        let admission = node.handle.admission().unwrap();
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let asking = tokio::spawn(admission.send(Submit(note("a", 1))));
        gate.reached().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        pass(Duration::from_secs(2)).await;
        assert_eq!(node.waits_open(), 0.0);
        gate.release();
        let next = admission.send(Submit(note("a", 2))).await.unwrap();
        assert_eq!(next.unwrap().aggregate_version, Some(2));

        // One that doesn't even ask.
        admission.try_send(Submit(note("a", 3))).unwrap();
        until(|| node.metric("wow_commands_total", &[("outcome", "committed")]) == 3.0).await;
        until(|| node.in_flight() == 0.0).await;
        assert_eq!(world.notes("a").await, [1, 2, 3]);
        node.stop().await;
    });
}
