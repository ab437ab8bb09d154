//! What is true on any node of Wow, the command runtime for event-sourced services.
//!
//! ```text
//! model       what users write: Aggregate, Decide, Command, Event, Saga
//! registry    every type a node knows, erased
//! submission  a request on its way in       admission  makes a built command of it (R1–R13)
//! command     the built command             execute    state → duplicate → guards → decide →
//! commit      one entry of the log                     hooks → evolve → append (R40–R58)
//! recent      an aggregate's last requests  wait       stages and plans (R60–R62)
//! partition   hash and assignment           router     local, forward, topic (R20–R23)
//! read        states and commits for callers
//! ports       what the kernel needs of the world
//! memory      the ports in memory, and their executable specification
//! conformance one suite a port              testkit    given / when / then for users
//! faults      storage that fails on purpose
//! ```
//!
//! Absent by design: actors, databases, HTTP, a clock, randomness and spawned tasks. All of these
//! come in through [`ports`], so that every rule can be tested in milliseconds and replayed from
//! a seed.

extern crate self as wow_kernel;

pub mod access;
pub mod admission;
pub mod command;
pub mod commit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod error;
pub mod execute;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
pub mod id;
pub mod memory;
pub mod model;
pub mod partition;
pub mod ports;
pub mod read;
pub mod recent;
pub mod registry;
pub mod result;
pub mod router;
pub mod saga;
pub mod submission;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod wait;

pub use wow_macros::{Aggregate, Command, Event};

/// Named by the code of the derives, so that the crates which use them need not depend on it.
#[doc(hidden)]
pub use serde_json;
