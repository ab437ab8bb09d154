//! What SQLite's errors mean.
//!
//! SQLite names no constraint: an error has an extended code, and for a unique violation a
//! message with the columns, which are ours and hold no user text.

use sea_orm::sqlx::Error as DriverError;
use sea_orm::{DbErr, RuntimeErr};
use wow_migrations::names::commit_log;

use super::super::error::{BatchFault, Fault, UniqueKey};

// The primary codes of https://www.sqlite.org/rescode.html that are told apart here.
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READ_ONLY: u32 = 8;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const TOO_BIG: u32 = 18;
const CONSTRAINT: u32 = 19;
const MISMATCH: u32 = 20;
const RANGE: u32 = 25;
const NOT_A_DATABASE: u32 = 26;

// Extended codes.
const CONSTRAINT_PRIMARY_KEY: u32 = 1555;
const CONSTRAINT_UNIQUE: u32 = 2067;

/// What an error means for the statement that met it.
pub(super) fn classify(error: &DbErr) -> Fault {
    let Some((code, message)) = driver_error(error) else {
        return Fault::Unavailable(error.to_string());
    };
    let text = format!("{message} (SQLite code {code})");
    match code {
        CONSTRAINT_UNIQUE | CONSTRAINT_PRIMARY_KEY => match unique_key(&message) {
            Some(key) => Fault::Taken(key),
            None => Fault::Refused(text),
        },
        _ => match primary(code) {
            TOO_BIG | CONSTRAINT | MISMATCH | RANGE => Fault::Refused(text),
            CORRUPT | NOT_A_DATABASE => Fault::Corrupt(text),
            _ => Fault::Unavailable(text),
        },
    }
}

/// What an error of `commit` means.
///
/// The last frame that a commit writes to the WAL makes it count. Where SQLite couldn't write it
/// (the disk is full, the file read-only or locked) nothing was committed, and the transaction is
/// rolled back. After any other failure, of a sync above all, the frame may be on disk, and a
/// restart may find it (R54).
pub(super) fn classify_commit(error: &DbErr) -> BatchFault {
    let reason = error.to_string();
    match driver_error(error).map(|(code, _)| primary(code)) {
        Some(FULL | READ_ONLY | BUSY | LOCKED) => BatchFault::Unavailable(reason),
        _ => BatchFault::Unknown(reason),
    }
}

fn primary(code: u32) -> u32 {
    code & 0xff
}

/// The code and message of an error that SQLite itself reported.
fn driver_error(error: &DbErr) -> Option<(u32, String)> {
    let (DbErr::Exec(RuntimeErr::SqlxError(driver))
    | DbErr::Query(RuntimeErr::SqlxError(driver))
    | DbErr::Conn(RuntimeErr::SqlxError(driver))) = error
    else {
        return None;
    };
    let DriverError::Database(database) = &**driver else {
        return None;
    };
    let code = database.code()?.parse().ok()?;
    Some((code, database.message().to_owned()))
}

/// Which key of the log a message names, as in
/// `UNIQUE constraint failed: commit_log.tenant_id, commit_log.aggregate_type, …`.
fn unique_key(message: &str) -> Option<UniqueKey> {
    let (_, named) = message.split_once(": ")?;
    let names = |columns: &[&str]| {
        let qualified = columns
            .iter()
            .map(|column| format!("{}.{column}", commit_log::TABLE));
        named.split(", ").eq(qualified)
    };
    if names(&commit_log::UNIQUE_VERSION_COLUMNS) {
        Some(UniqueKey::Version)
    } else if names(&commit_log::UNIQUE_REQUEST_COLUMNS) {
        Some(UniqueKey::Request)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r44_the_two_unique_keys_are_told_apart_by_their_columns() {
        let version = "UNIQUE constraint failed: commit_log.tenant_id, \
                       commit_log.aggregate_type, commit_log.aggregate_id, commit_log.version";
        let request = "UNIQUE constraint failed: commit_log.tenant_id, \
                       commit_log.aggregate_type, commit_log.request_id";
        let position = "UNIQUE constraint failed: commit_log.partition_no, commit_log.position";
        assert_eq!(unique_key(version), Some(UniqueKey::Version));
        assert_eq!(unique_key(request), Some(UniqueKey::Request));
        assert_eq!(unique_key(position), None);
        assert_eq!(
            unique_key("NOT NULL constraint failed: commit_log.events"),
            None
        );
    }
}
