//! The public REST port (spec/03): it turns requests into submissions and results into answers.
//!
//! ```text
//! server     listens, bounds, stops          routes    paths from the registry, one tree
//! edge       one request: route → answer     headers   the contract's headers, each once
//! extract    path + headers → Submission     body      JSON, bounded in size and time
//! command    a command on its route          facade    any command, named by headers
//! sse        stages as they come             read      states, snapshots, commits
//! render     results and errors as JSON      error     the one table of codes
//! metadata   what the node knows             openapi   the same as OpenAPI 3.1, and a page
//! gateway    what it needs of the node       connection  from its first byte; activity  to its end
//! ```
//!
//! Absent by design: rules. What a request means and whether it may is decided by admission, the
//! same way for every entry point. The connection's fate changes nothing behind the gateway.

mod activity;
mod body;
mod command;
mod connection;
mod edge;
mod error;
mod extract;
mod facade;
mod gateway;
mod headers;
mod health;
mod metadata;
mod openapi;
mod page;
mod read;
mod render;
mod routes;
mod server;
mod settings;
mod sse;
mod trace;

pub use error::{ErrorRow, Refusal, TABLE as ERROR_TABLE};
pub use gateway::{Authenticator, Gateway, NodeGateway, StateAt};
pub use routes::{Endpoint, Parameter, ReadKind, Route, RouteError, RouteTable, Verb};
pub use server::{BoundServer, HttpError, HttpServer, Stop, Stopper};
pub use settings::HttpSettings;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
