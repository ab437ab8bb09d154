//! What every implementation of the storage ports has to hold: one suite a port.
//!
//! An adapter's test is one call. It hands in a function that makes fresh, empty stores, and
//! each case of the suite gets its own:
//!
//! ```
//! use std::sync::Arc;
//! use wow_kernel::conformance::{self, Stores};
//! use wow_kernel::memory::{ManualClock, MemoryStore};
//!
//! async fn fresh() -> Stores {
//!     let clock = ManualClock::new();
//!     let store = MemoryStore::new(Arc::new(clock.clone()));
//!     Stores::of(Arc::new(store)).with_time(move |duration| clock.advance(duration))
//! }
//!
//! # #[tokio::main]
//! # async fn main() {
//! conformance::checkpoint_store::suite(fresh).await;
//! # }
//! ```
//!
//! The suites judge meaning, not mechanism: they see a store through its ports alone, ask of it
//! only what the ports' documentation promises, and never measure time. A suite runs all of its
//! cases before it fails, and then names each case that failed with what it saw; a case of one
//! of the numbered rules begins with its number.
//!
//! What a store has to be like for them:
//! - it is empty, and has [`PARTITIONS`] partitions;
//! - at least [`APPENDERS`] appends at once are not too many for it;
//! - the suites run on tokio and spawn tasks there; on a multi-threaded runtime they are at
//!   their strictest.

#![allow(
    clippy::unwrap_used,
    reason = "the suites are tests: a case fails by panicking"
)]

mod cases;
pub mod checkpoint_store;
pub mod commit_log;
#[cfg(test)]
mod flawed;
pub mod history;
pub mod lease_store;
pub mod request_lookup;
pub(crate) mod samples;
pub mod snapshot_store;
mod stores;
#[cfg(test)]
mod tests;
mod texts;
mod together;

pub use self::stores::{PassTime, Stores};

/// How many partitions the stores under test have.
pub const PARTITIONS: u32 = 64;

/// How many appends the suites have in flight at once, at most.
pub const APPENDERS: usize = 64;
