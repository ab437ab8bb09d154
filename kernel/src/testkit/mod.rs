//! Given / when / then for aggregates and sagas, without a node and without a runtime.
//!
//! A command takes the way that it takes on a node. Its JSON goes through admission: identity,
//! access, decoding, validation, transformers. Then the kernel runs it on the log in memory:
//! guards, decide, hooks, evolve, append. What the log holds afterwards is read back and must
//! give the state that deciding ended with. Only then is it compared with what the test expects.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use wow_kernel::model::{Decide, DecideContext, Decision, Evolve, Rejection};
//! use wow_kernel::testkit::given;
//! use wow_kernel::{Aggregate, Command, Event};
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! enum LampEvent {
//!     SwitchedOn { watts: u32 },
//! }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
//! #[command(upserts, pure)]
//! struct SwitchOn {
//!     watts: u32,
//! }
//!
//! #[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
//! #[aggregate(commands(SwitchOn))]
//! struct Lamp {
//!     watts: u32,
//! }
//!
//! impl Evolve for Lamp {
//!     type Event = LampEvent;
//!
//!     fn evolve(&mut self, event: &LampEvent) {
//!         let LampEvent::SwitchedOn { watts } = event;
//!         self.watts = *watts;
//!     }
//! }
//!
//! impl Decide<SwitchOn> for Lamp {
//!     async fn decide(
//!         &self,
//!         command: &SwitchOn,
//!         _context: &DecideContext,
//!     ) -> Result<Decision<LampEvent>, Rejection> {
//!         if self.watts > 0 {
//!             return Err(Rejection::new("lamp.on", "the lamp is on already"));
//!         }
//!         Ok(Decision::event(LampEvent::SwitchedOn { watts: command.watts }))
//!     }
//! }
//!
//! given::<Lamp>("kitchen")
//!     .when(SwitchOn { watts: 5 })
//!     .then()
//!     .events([LampEvent::SwitchedOn { watts: 5 }])
//!     .state(|lamp| assert_eq!(lamp.watts, 5))
//!     .when(SwitchOn { watts: 9 })
//!     .then()
//!     .rejects("lamp.on");
//!
//! given::<Lamp>("kitchen")
//!     .events([LampEvent::SwitchedOn { watts: 5 }])
//!     .when_json("switch_on", r#"{"watts": 9, "colour": "red"}"#)
//!     .then()
//!     .rejects("wow.command.body-invalid");
//! ```
//!
//! `then` runs the command to its end on the calling thread. A test whose services need a
//! runtime awaits instead: `given::<Order>("1").when(…).await.events([…])`.

mod given;
mod saga;
mod story;
#[cfg(test)]
mod tests;
mod then;

pub use given::{Given, When, given};
pub use saga::{GivenSaga, SagaThen, given_saga};
pub use then::Then;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Wakes the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
