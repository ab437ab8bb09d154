//! What the tests stand on: the shipped binary in a folder of its own, a client, and readers of
//! what it writes. None of it uses the node's own code.

pub(crate) mod client;
pub(crate) mod database;
pub(crate) mod exposition;
pub(crate) mod process;
#[allow(dead_code, reason = "there are more faults than tests need today")]
pub(crate) mod proxy;
#[allow(dead_code, reason = "there are more faults than tests need today")]
pub(crate) mod server;
pub(crate) mod socket;
pub(crate) mod wait;

pub(crate) use client::{Answer, Client};
pub(crate) use process::{Folder, Node};
