//! The public port from the outside of its edge: requests in, submissions and answers out.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod commands;
mod documents;
mod node;
mod reads;
mod server;
