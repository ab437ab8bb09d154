//! The node as its users and its operator meet it: real flows, stopping, metrics, callers.

mod health;
mod jwt;
mod metrics;
mod restart;
mod second_node;
mod transfer;
