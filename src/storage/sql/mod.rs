//! What the databases share: one set of statements, and one set of answers made of their rows.
//!
//! ```text
//! grammar   how a database says what the statements need     texts   the statements
//! answers   rows sorted by the question they belong to        rival   whose keys are taken
//! insert    multi-row inserts                                numbered  parameters by number
//! ```
//!
//! One text serves any number of keys: they come as one JSON parameter, which the database makes
//! rows of, so every statement is prepared once. Ids travel as JSON strings, and come out byte
//! for byte as they went in.

mod answers;
mod grammar;
mod insert;
mod numbered;
mod rival;
mod texts;

pub(in crate::storage) use self::answers::{Source, SqlReads};
pub(in crate::storage) use self::grammar::{Cell, Grammar, Keys};
pub(in crate::storage) use self::insert::{CHUNKS, chunks, insert};
pub(in crate::storage) use self::numbered::{list, numbered};
pub(in crate::storage) use self::rival::{rival_keys, rivals};
pub(in crate::storage) use self::texts::Texts;
