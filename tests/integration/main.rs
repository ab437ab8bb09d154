//! The node from outside, in one binary: each module is a part of it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod cluster;
mod http;
mod kill;
mod node;
mod storage;
mod support;
