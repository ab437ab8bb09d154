//! What is true on any node of Wow, the command runtime for event-sourced services.
//!
//! ```text
//! model       what users write: Aggregate, Decide, Command, Event, Saga
//! registry    every type a node knows, erased
//! submission  a request on its way in       admission  makes a built command of it (R1–R13)
//! access      who may (R4)                  command    the built command (R7)
//! execute     state → duplicate → guards → decide → hooks → evolve → append (R40–R58)
//! commit      one entry of the log          recent     an aggregate's last requests (R41)
//! result      what a caller is told         error      why a command fails, each with its code
//! wait        stages and plans (R60–R62)    saga       a saga's commands on their way in (R83)
//! partition   the hash that never changes   router     here, to a peer, or through a topic (R20)
//! assignment  who should own what (R71)     membership what a member does about it (R70–R74)
//! forward     a command on its way to its owner, and its answer (R21–R23)
//! read        states and commits for callers
//! id          every identifier, a type of its own
//! ports       what the kernel needs of the world
//! memory      the ports in memory, and their executable specification
//! conformance one suite a port (feature)    faults     storage that fails on purpose (feature)
//! testkit     given / when / then for users (feature)
//! ```
//!
//! What holds everywhere: a built command never changes; after a first try of an append its
//! events are found or appended again, never decided again (R54); an event that can't be read
//! stops what needs it and is never skipped (R50); a panic of users' code fails one command (R32).
//!
//! Absent by design: actors, databases, HTTP, a clock, randomness and spawned tasks. All of these
//! come in through [`ports`], so that every rule can be tested in milliseconds and replayed from
//! a seed.
//!
//! Services depend on the crate `wow`, which has a node as well. A crate that holds a domain and
//! nothing else may depend on this one alone.

extern crate self as wow_kernel;

pub mod access;
pub mod admission;
pub mod assignment;
pub mod command;
pub mod commit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod error;
pub mod execute;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
pub mod forward;
pub mod id;
pub mod membership;
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
