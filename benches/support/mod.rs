//! What the benches of this package share.

#![allow(dead_code, unreachable_pub, reason = "each bench uses a part of it")]

pub(crate) mod account;
pub(crate) mod commits;
pub(crate) mod database;
pub(crate) mod floor;
pub(crate) mod load;
pub(crate) mod node;
