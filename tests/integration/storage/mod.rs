//! Storage on real databases.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

mod batches;
mod conformance;
pub(crate) mod databases;
mod faults;
mod full_disk;
mod killed;
mod opening;
mod reads;
mod servers;
mod support;
mod texts;
mod verify;
