//! The running Wow system.
pub mod handle;
