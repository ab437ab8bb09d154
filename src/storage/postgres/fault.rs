//! What PostgreSQL's errors mean.
//!
//! An error of severity ERROR means that the transaction was undone; a code says why. FATAL and
//! PANIC end the connection, and say nothing of a commit that was under way.

use sea_orm::sqlx::Error as DriverError;
use sea_orm::sqlx::postgres::{PgDatabaseError, PgSeverity};
use wow_migrations::names::commit_log;

use super::super::error::{Fault, UniqueKey};
use super::super::server::{CommitSent, WriteFault};

// The codes of https://www.postgresql.org/docs/current/errcodes-appendix.html told apart here.
const UNIQUE_VIOLATION: &str = "23505";
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK_DETECTED: &str = "40P01";
const UNKNOWN_DATABASE: &str = "3D000";

/// Classes of codes: a row that is refused whenever it comes.
const REFUSING: [&str; 3] = ["22", "23", "54"];

/// Classes of codes: what is stored is damaged.
const DAMAGED: [&str; 1] = ["XX"];

/// Classes of codes: who connects is not let in.
const NOT_LET_IN: [&str; 2] = ["28", "42"];

fn reported(error: &DriverError) -> Option<&PgDatabaseError> {
    match error {
        DriverError::Database(error) => error.try_downcast_ref(),
        _ => None,
    }
}

/// Whether a connection can be used after an error.
pub(super) fn survives(error: &DriverError) -> bool {
    reported(error).is_some_and(is_survived)
}

fn is_survived(error: &PgDatabaseError) -> bool {
    !matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)
}

/// What an error means for the statement that met it.
pub(super) fn classify(error: &DriverError) -> Fault {
    let Some(reported) = reported(error) else {
        return Fault::Unavailable(error.to_string());
    };
    let code = reported.code();
    let text = format!("{} (PostgreSQL code {code})", reported.message());
    let is_of = |classes: &[&str]| classes.iter().any(|class| code.starts_with(class));
    if !is_survived(reported) {
        return Fault::Unavailable(text);
    }
    if code == UNIQUE_VIOLATION {
        return match reported.constraint() {
            Some(commit_log::UNIQUE_VERSION) => Fault::Taken(UniqueKey::Version),
            Some(commit_log::UNIQUE_REQUEST) => Fault::Taken(UniqueKey::Request),
            _ => Fault::Refused(text),
        };
    }
    if is_of(&REFUSING) {
        Fault::Refused(text)
    } else if is_of(&DAMAGED) {
        Fault::Corrupt(text)
    } else {
        Fault::Unavailable(text)
    }
}

/// What an error means for the batch that met it. What isn't an answer of the server, or ends the
/// connection, says nothing once the commit was sent (R54).
pub(super) fn of_batch(error: &DriverError, commit: &CommitSent) -> WriteFault {
    match reported(error) {
        Some(reported) if is_survived(reported) => match reported.code() {
            SERIALIZATION_FAILURE | DEADLOCK_DETECTED => {
                WriteFault::Again(reported.message().to_owned())
            }
            _ => WriteFault::Undone(classify(error)),
        },
        _ => commit.silence(error.to_string()),
    }
}

/// Whether an error in connecting is mended by waiting.
pub(super) fn may_come_back(error: &DriverError) -> bool {
    match error {
        DriverError::Io(_) | DriverError::PoolTimedOut => true,
        _ => reported(error).is_some_and(|reported| {
            let code = reported.code();
            let is_refused = NOT_LET_IN.iter().any(|class| code.starts_with(class));
            let is_misled = code == UNKNOWN_DATABASE
                || REFUSING
                    .iter()
                    .chain(&DAMAGED)
                    .any(|class| code.starts_with(class));
            !is_refused && !is_misled
        }),
    }
}
