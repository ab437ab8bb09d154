//! Wow: a command runtime for event-sourced services.
//!
//! Write aggregates against the [`prelude`], test them with the test kit (feature `testkit`),
//! and run them on a [`node`].

// The derives name this package; within it that name has to lead here.
extern crate self as wow;

pub mod access;
pub mod admin;
pub mod config;
pub mod http;
pub mod node;
pub mod prelude;
pub mod storage;
pub mod telemetry;

pub use wow_kernel as kernel;
#[cfg(feature = "testkit")]
pub use wow_kernel::testkit;
