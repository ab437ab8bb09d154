//! Everything runs on one thread too, on a clock that a test owns (spec/02, Determinism).

use std::time::{Duration, Instant};

use wow_kernel::wait::Stage;

use crate::sagas::{handled, note_to};
use crate::support::{World, code, note, pass, paused};

#[test]
fn two_hours_of_a_node_pass_in_no_time() {
    let began = Instant::now();
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().start().await;
        let before = tokio::time::Instant::now();
        for n in 0..120 {
            let answer = node.handle.submit(handled(vec![note_to("a", n)])).await;
            assert_eq!(code(&answer), "Ok");
            assert_eq!(code(&node.handle.submit(note("b", n)).await), "Ok");
            pass(Duration::from_secs(60)).await;
        }
        assert!(before.elapsed() >= Duration::from_secs(2 * 3600));
        assert_eq!(world.notes("a").await, (0..120).collect::<Vec<_>>());
        assert_eq!(world.notes("b").await, (0..120).collect::<Vec<_>>());
        assert_eq!(node.stop().await.unfinished, 0);
    });
    // A bound of a different order than two hours, not a measurement.
    assert!(began.elapsed() < Duration::from_secs(120));
}

#[tokio::test]
async fn the_same_holds_on_threads() {
    for threads in [1, 2, 3] {
        let world = World::new();
        let node = world.on_threads(threads).with_sagas().start().await;
        for n in 0..20 {
            let answer = node.handle.submit(handled(vec![note_to("a", n)])).await;
            assert_eq!(answer.unwrap().stage, Stage::SagaHandled);
        }
        assert_eq!(world.notes("a").await, (0..20).collect::<Vec<_>>());
        assert_eq!(node.stop().await.unfinished, 0);
    }
}
