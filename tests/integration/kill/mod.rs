//! `kill -9` under load, again and again on one file: what was acknowledged is in the log exactly
//! once, and nothing else is.
//!
//! ```text
//! run      starts and kills the node, and has the log checked at the end
//! clients  send commands, and send them again after an answer that never came
//! history  what the clients have seen
//! check    the history against the log: it knows the tables and the contract, and no code of
//!          the node's
//! ledger   what the log's events say of money and carts
//! ```

pub(crate) mod check;
pub(crate) mod clients;
pub(crate) mod history;
mod ledger;
pub(crate) mod run;
