//! Wow: a command runtime for event-sourced services.
//!
//! Write aggregates against the [`prelude`], test them with the test kit (feature `testkit`),
//! and run them on a node.

// The derives name this package; within it that name has to lead here.
extern crate self as wow;

pub mod prelude;

pub use wow_kernel as kernel;
#[cfg(feature = "testkit")]
pub use wow_kernel::testkit;
