//! What MySQL's errors mean.
//!
//! They carry numbers. The key of a unique violation stands only in the message, at its end:
//! what comes before is a value that users chose.

use sea_orm::sqlx::Error as DriverError;
use sea_orm::sqlx::mysql::MySqlDatabaseError;
use wow_migrations::names::commit_log;

use super::super::error::{Fault, UniqueKey};
use super::super::server::{CommitSent, WriteFault};

// The numbers of https://dev.mysql.com/doc/mysql-errors/8.0/en/ and of MariaDB told apart here.
const DUPLICATE_ENTRY: u16 = 1062;
const LOCK_WAIT_TIMEOUT: u16 = 1205;
const DEADLOCK: u16 = 1213;
const RECORD_CHANGED: u16 = 1020;

/// A row that is refused whenever it comes: null, out of range, too long, no such text, too large.
const REFUSING: [u16; 11] = [
    1048, 1118, 1153, 1264, 1265, 1292, 1364, 1366, 1406, 1690, 3140,
];

/// The server has ended the connection, or is about to.
const ENDING: [u16; 8] = [1053, 1152, 1158, 1159, 1160, 1161, 1927, 4031];

/// A table or an index is damaged.
const DAMAGED: [u16; 4] = [126, 1034, 1194, 1712];

/// Who connects is not let in, or misled.
const NOT_LET_IN: [u16; 6] = [1044, 1045, 1049, 1142, 1143, 1698];

fn reported(error: &DriverError) -> Option<&MySqlDatabaseError> {
    match error {
        DriverError::Database(error) => error.try_downcast_ref(),
        _ => None,
    }
}

/// Whether a connection can be used after an error.
pub(super) fn survives(error: &DriverError) -> bool {
    reported(error).is_some_and(|reported| !ENDING.contains(&reported.number()))
}

/// What an error means for the statement that met it.
pub(super) fn classify(error: &DriverError) -> Fault {
    let Some(reported) = reported(error) else {
        return Fault::Unavailable(error.to_string());
    };
    let number = reported.number();
    let text = format!("{} (MySQL error {number})", reported.message());
    if number == DUPLICATE_ENTRY {
        return match unique_key(reported.message()) {
            Some(key) => Fault::Taken(key),
            None => Fault::Refused(text),
        };
    }
    if REFUSING.contains(&number) {
        Fault::Refused(text)
    } else if DAMAGED.contains(&number) {
        Fault::Corrupt(text)
    } else {
        Fault::Unavailable(text)
    }
}

/// Which key of the log a message names at its end: `… for key 'uk_commit_log_version'`, or with
/// the table before it.
fn unique_key(message: &str) -> Option<UniqueKey> {
    let named = message.strip_suffix('\'')?;
    let (_, name) = named.rsplit_once(['\'', '.'])?;
    match name {
        commit_log::UNIQUE_VERSION => Some(UniqueKey::Version),
        commit_log::UNIQUE_REQUEST => Some(UniqueKey::Request),
        _ => None,
    }
}

/// What an error means for the batch that met it. Once the commit was sent, only a deadlock says
/// that it was undone (R54).
pub(super) fn of_batch(error: &DriverError, commit: &CommitSent) -> WriteFault {
    let Some(reported) = reported(error) else {
        return commit.silence(error.to_string());
    };
    let message = || reported.message().to_owned();
    match (commit.is_set(), reported.number()) {
        (_, DEADLOCK) | (false, LOCK_WAIT_TIMEOUT | RECORD_CHANGED) => WriteFault::Again(message()),
        (true, _) => WriteFault::Unknown(message()),
        (false, _) => WriteFault::Undone(classify(error)),
    }
}

/// Whether an error in connecting is mended by waiting.
pub(super) fn may_come_back(error: &DriverError) -> bool {
    match error {
        DriverError::Io(_) | DriverError::PoolTimedOut => true,
        _ => reported(error).is_some_and(|reported| {
            let number = reported.number();
            !NOT_LET_IN.contains(&number)
                && !REFUSING.contains(&number)
                && !DAMAGED.contains(&number)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r44_the_key_is_named_at_the_end_whatever_users_wrote_before() {
        let entry = |value: &str, key: &str| format!("Duplicate entry '{value}' for key '{key}'");
        let keys = [
            ("uk_commit_log_version", Some(UniqueKey::Version)),
            ("commit_log.uk_commit_log_version", Some(UniqueKey::Version)),
            ("uk_commit_log_request", Some(UniqueKey::Request)),
            ("commit_log.uk_commit_log_request", Some(UniqueKey::Request)),
            ("PRIMARY", None),
            ("commit_log.PRIMARY", None),
        ];
        for value in [
            "(0)-account-a-1",
            "' for key 'uk_commit_log_version",
            "''.'",
        ] {
            for (key, expected) in keys {
                assert_eq!(unique_key(&entry(value, key)), expected, "{value} {key}");
            }
        }
        assert_eq!(unique_key("Duplicate entry"), None);
    }
}
