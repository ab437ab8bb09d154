//! What PostgreSQL and MySQL share: a server at the other end of a network, which may be away,
//! stand still, restart, or end a connection at any moment.
//!
//! ```text
//! open         waits for it, migrates under a lock      connections  those that read
//! write        a writer's own connection, its deadline, what is tried again
//! nodelay      what the driver leaves out of a connection
//! ```
//!
//! A connection is owned by whoever uses it, and a pool of a driver's is not used: such a pool
//! asks each connection whether it is well as it comes back, in a task that a server which
//! stands still would hold for ever, with the connection's place in the pool. Here a call that
//! isn't answered in time drops its connection, and the next one makes another.

mod connections;
mod nodelay;
mod open;
#[cfg(test)]
mod plans;
mod write;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sea_orm::sqlx::Error as DriverError;
use sea_orm::{DatabaseConnection, DbErr, QueryResult};
use wow_kernel::id::EpochMillis;

pub(in crate::storage) use self::open::{open, open_read_only};
use super::batch::{Batch, Written};
use super::error::{BatchFault, Fault};
use super::sql::Texts;

/// What is added to the server's own time-out before a call is given up: the server's comes
/// first wherever it still answers.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// How long a connection may have been idle and is still used unasked.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);

/// A kind of database server, and where one is.
#[async_trait]
pub(in crate::storage) trait Server:
    fmt::Debug + Clone + Send + Sync + 'static
{
    /// A connection, with its settings.
    type Connection: Send + 'static;

    /// Takes the lock under which the schema is looked at and changed, if it is free; it goes with
    /// its connection.
    const TRY_LOCK: &'static str;

    /// What it finds wrong with its tables: one text a row.
    const DAMAGES: &'static str;

    /// The port at which it listens.
    fn port(&self) -> u16;

    /// Connects.
    ///
    /// # Errors
    /// What the driver says; this waits as long as the network lets it.
    async fn connect(&self) -> Result<Self::Connection, DriverError>;

    /// Whether an error in connecting is mended by waiting.
    fn may_come_back(error: &DriverError) -> bool;

    /// Asks whether a connection is well.
    ///
    /// # Errors
    /// What the driver says.
    async fn ping(connection: &mut Self::Connection) -> Result<(), DriverError>;

    /// Says goodbye.
    async fn close(connection: Self::Connection);

    /// The statements that read, for the server behind a connection.
    fn texts(connection: &Self::Connection) -> &'static Texts;

    /// Runs a statement that has the keys as its only parameter, or none.
    ///
    /// # Errors
    /// What the driver says.
    async fn query(
        connection: &mut Self::Connection,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, DriverError>;

    /// What an error means for the statement that met it.
    fn classify(error: &DriverError) -> Fault;

    /// Whether a connection can be used after an error.
    fn survives(error: &DriverError) -> bool;

    /// Writes a batch in one transaction. No commit in it is given a time before `newest_at`.
    ///
    /// # Errors
    /// [`WriteFault`]; after [`WriteFault::Again`] and [`WriteFault::Undone`] the connection has no
    /// transaction open, or is broken.
    async fn write(
        connection: &mut Self::Connection,
        batch: &Batch<'_>,
        newest_at: EpochMillis,
        commit: &CommitSent,
    ) -> Result<Written, WriteFault>;

    /// One connection, whose statements may take so long: for migrations, for people's reads, both
    /// without a limit, and for leases.
    ///
    /// # Errors
    /// What the driver says.
    async fn database(&self, limit: Option<Duration>) -> Result<DatabaseConnection, DbErr>;
}

/// Whether the statement that commits a batch was sent: after that, silence says nothing (R54).
#[derive(Debug, Default)]
pub(in crate::storage) struct CommitSent(AtomicBool);

impl CommitSent {
    /// To be said before the first byte of it leaves.
    pub(in crate::storage) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was.
    pub(in crate::storage) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// What a failure means whose answer never came.
    pub(in crate::storage) fn silence(&self, reason: String) -> WriteFault {
        if self.is_set() {
            WriteFault::Unknown(reason)
        } else {
            WriteFault::Undone(Fault::Unavailable(reason))
        }
    }
}

/// Why a batch was not written.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::storage) enum WriteFault {
    /// It was undone because of what others did at the same time: a deadlock, a serialisation
    /// failure. The same may succeed at once.
    Again(String),
    /// Nothing of it is in the database.
    Undone(Fault),
    /// It may be in the database.
    Unknown(String),
}

impl From<WriteFault> for BatchFault {
    fn from(fault: WriteFault) -> Self {
        match fault {
            WriteFault::Again(reason) => Self::Unavailable(reason),
            WriteFault::Undone(fault) => fault.into(),
            WriteFault::Unknown(reason) => Self::Unknown(reason),
        }
    }
}

/// How long a server may take.
#[derive(Debug, Clone, Copy)]
pub(in crate::storage) struct Patience {
    /// To connect, and to say that a connection is well.
    pub(in crate::storage) connect: Duration,
    /// To answer a statement or a batch.
    pub(in crate::storage) answer: Duration,
}

impl Patience {
    /// As the settings say.
    pub(in crate::storage) fn new(connect: Duration, statement: Duration) -> Self {
        Self {
            connect,
            answer: statement + ANSWER_MARGIN,
        }
    }
}

/// Connects within its time.
///
/// # Errors
/// What the driver says, or that there was no answer.
async fn connect<S: Server>(server: &S, patience: Patience) -> Result<S::Connection, DriverError> {
    let connection = within(patience.connect, server.connect()).await?;
    nodelay::set(server.port()).await;
    Ok(connection)
}

/// Waits for an answer of a server.
async fn within<T>(
    time: Duration,
    answer: impl Future<Output = Result<T, DriverError>>,
) -> Result<T, DriverError> {
    tokio::time::timeout(time, answer)
        .await
        .unwrap_or_else(|_| {
            let reason = format!("no answer within {time:?}");
            let error = std::io::Error::new(std::io::ErrorKind::TimedOut, reason);
            Err(DriverError::Io(error))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r54_silence_means_nothing_was_written_until_the_commit_was_sent() {
        let commit = CommitSent::default();
        let unavailable = Fault::Unavailable("gone".to_owned());
        let before = commit.silence("gone".to_owned());
        assert_eq!(before, WriteFault::Undone(unavailable));
        commit.set();
        let after = commit.silence("gone".to_owned());
        assert_eq!(after, WriteFault::Unknown("gone".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stands_still_is_waited_for_no_longer_than_said() {
        let silence = std::future::pending::<Result<(), DriverError>>();
        let answer = within(Duration::from_secs(3), silence).await;
        let Err(DriverError::Io(error)) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }
}
