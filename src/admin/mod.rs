//! The admin port: metrics and health, for those who run the node.
//!
//! It binds loopback unless told otherwise, may ask for a token of its own, and has none of the
//! public port's paths, as that has none of these (spec/03, spec/06).

mod server;
mod token;

pub use server::{AdminError, AdminServer, AdminSettings, AdminStopper, BoundAdmin, Readiness};
pub use token::AdminToken;

#[cfg(test)]
mod tests;
