//! The history against the log.
//!
//! Everything here follows from the contract: names of tables, the form of a saga's request ids,
//! what an answer promises. Nothing follows from how the node does it.

mod log;
mod promises;
mod sagas;
#[cfg(test)]
mod tests;

use std::fmt;

use super::history::History;
use crate::support::database::{Key, Log};

pub(crate) use sagas::unfinished;

/// What must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A version is missing, or there twice.
    Version { key: Key, expected: i64, found: i64 },
    /// A position is missing, or there twice.
    Position {
        partition: i64,
        expected: i64,
        found: i64,
    },
    /// The head is not the newest position.
    Head {
        partition: i64,
        head: i64,
        newest: i64,
    },
    /// Two commits of one request.
    RequestTwice { request: String },
    /// Two commits of one command.
    CommandTwice { command: String },
    /// A commit that nobody asked for.
    Unasked { request: String },
    /// An acknowledged commit is not in the log.
    Lost { request: String },
    /// A commit is not what was asked for, or not what was acknowledged.
    Altered { request: String, how: String },
    /// Two answers to one request differ.
    AnswersDiffer { request: String },
    /// Two attempts of one request were both told that they are the first.
    FirstTwice { request: String },
    /// A request that was refused is in the log.
    RefusedCommitted { request: String },
    /// The system itself refused what was in order.
    Refused { request: String, code: String },
    /// A later command came before an earlier one.
    OutOfOrder { key: Key, version: i64 },
    /// A read showed less than an earlier answer had promised, or what never was.
    Read {
        key: Key,
        version: i64,
        at_least: i64,
        at_most: i64,
    },
    /// A snapshot holds less than an answer had promised, or what never was.
    Snapshot {
        key: Key,
        version: i64,
        at_least: i64,
        at_most: i64,
    },
    /// What a saga has to send is not there.
    SagaMissing { request: String },
    /// The events lead to a state that nothing allows.
    State { key: Key, how: String },
    /// Money came from nowhere, or went there.
    Money { created: i64, held: i64 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Every fault in the log of a node at rest, after what the clients have seen.
pub(crate) fn check(history: &History, log: &Log) -> Vec<Fault> {
    let mut faults = log::check(log);
    faults.extend(promises::check(history, log));
    faults.extend(sagas::check(log));
    faults
}
