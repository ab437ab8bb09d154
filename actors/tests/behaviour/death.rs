//! A lane that dies all the same loses nothing that it had not begun (R32).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use wow_actors::NodeClock;
use wow_kernel::faults::{Call, Moment};
use wow_kernel::id::EpochMillis;
use wow_kernel::ports::Clock;
use wow_kernel::wait::Stage;

use crate::support::{World, code, note, until};

/// A clock that panics once, on an actor's thread.
struct Fused {
    clock: NodeClock,
    armed: AtomicBool,
}

impl Fused {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: NodeClock::new(),
            armed: AtomicBool::new(false),
        })
    }

    fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }
}

impl Clock for Fused {
    fn now(&self) -> EpochMillis {
        self.clock.now()
    }

    fn monotonic(&self) -> Duration {
        let thread = std::thread::current();
        let is_actors = thread.name().is_some_and(|name| name.contains("arbiter"));
        assert!(
            !(is_actors && self.armed.swap(false, Ordering::SeqCst)),
            "the clock panics"
        );
        self.clock.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

#[tokio::test]
async fn r32_what_a_dead_lane_had_queued_runs_on_a_new_one_whether_or_not_its_caller_waits() {
    let world = World::new();
    let clock = Fused::new();
    // Nothing else asks the clock while the lane does.
    let mut plan = world
        .on_threads(1)
        .limits(|limits| limits.poll = Duration::from_secs(3600));
    plan.clock = clock.clone();
    let node = plan.start().await;

    let gate = node.faults.hold(Call::Append, Moment::After);
    let first = node.begin(note("a", 1).wait(Stage::Processed));
    gate.reached().await;
    let begun = node.begin(note("a", 2).wait(Stage::Processed));
    let gone = node.begin(note("a", 3).wait(Stage::Sent));
    let waiting = node.begin(note("a", 4).wait(Stage::Processed));
    let last = node.begin(note("a", 5).wait(Stage::Sent));
    assert_eq!(code(&gone.await.unwrap()), "Ok");
    assert_eq!(code(&last.await.unwrap()), "Ok");

    // The lane dies where it looks at the second command's deadline: that one has begun.
    clock.arm();
    gate.release();
    assert_eq!(code(&first.await.unwrap()), "Ok");
    let begun = begun.await.unwrap();
    assert_eq!(code(&begun), "wow.command.outcome-unknown");
    assert!(!begun.unwrap().committed);
    assert_eq!(code(&waiting.await.unwrap()), "Ok");
    assert_eq!(code(&node.run(note("a", 6)).await), "Ok");
    assert_eq!(world.notes("a").await, [1, 3, 4, 5, 6]);
    assert_eq!((node.lanes(), node.in_flight()), (1.0, 0.0));
    assert!(node.handle.is_ready());
    node.stop().await;
}

#[tokio::test]
async fn r34_a_node_that_has_lost_a_vital_actor_is_not_ready_and_refuses() {
    let world = World::new();
    let clock = Fused::new();
    let mut plan = world.on_threads(1);
    plan.clock = clock.clone();
    let node = plan.start().await;
    assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
    // Whichever actor asks next.
    until(|| {
        clock.arm();
        drop(node.begin(note("a", 2)));
        !node.handle.is_ready()
    })
    .await;
    node.stop().await;
}
