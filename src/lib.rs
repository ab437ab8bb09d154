//! Wow: a command runtime for event-sourced services.
//!
//! An aggregate is a state, its events, and a function for each of its commands; all else is
//! this crate's: HTTP, identity and access, one command at a time for each aggregate, the log,
//! snapshots, sagas, and retries that do nothing twice.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use wow::prelude::*;
//!
//! #[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
//! #[aggregate(commands(Increment))]
//! struct Counter {
//!     value: u32,
//! }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, Event)]
//! enum CounterEvent {
//!     Incremented { by: u32 },
//! }
//!
//! #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
//! #[command(upserts, pure)]
//! struct Increment {
//!     by: u32,
//! }
//!
//! impl Evolve for Counter {
//!     type Event = CounterEvent;
//!
//!     fn evolve(&mut self, CounterEvent::Incremented { by }: &CounterEvent) {
//!         self.value += by;
//!     }
//! }
//!
//! impl Decide<Increment> for Counter {
//!     async fn decide(
//!         &self,
//!         command: &Increment,
//!         _context: &DecideContext,
//!     ) -> Result<Decision<CounterEvent>, Rejection> {
//!         Ok(Decision::event(CounterEvent::Incremented { by: command.by }))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = NodeBuilder::in_memory().register::<Counter>().start().await?;
//! let send = || node.handle().send(Increment { by: 2 }).to("visits").request_id("visit-1");
//! assert_eq!(send().await?.aggregate_version, Some(1));
//! assert!(send().await?.duplicate, "a request commits at most once");
//! assert_eq!(node.read::<Counter>("visits").await?.value, 2);
//! node.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`prelude`] | what aggregates, sagas and programs are written with |
//! | [`node`] | puts a node together, runs it, stops it |
//! | [`config`] | every setting, from file, environment and command line |
//! | [`http`], [`admin`] | the public port, and the operators' |
//! | [`storage`] | log, snapshots and checkpoints in a database |
//! | [`cluster`] | what the nodes of one service say to each other |
//! | [`access`], [`telemetry`] | who calls; what is logged |
//! | [`kernel`] | the rules: what is true on any node |
//!
//! The feature `testkit` adds `wow::testkit`, given / when / then for aggregates and sagas; it
//! belongs in `[dev-dependencies]`. Panics have to unwind, for a panic in a command function fails
//! its command and no more.

// The derives name this package; within it that name has to lead here.
extern crate self as wow;

pub mod access;
pub mod admin;
pub mod cluster;
pub mod config;
pub mod http;
pub mod node;
pub mod prelude;
pub mod storage;
pub mod telemetry;

pub use wow_kernel as kernel;
#[cfg(feature = "testkit")]
pub use wow_kernel::testkit;
