//! What storage is told when it is opened.

use std::fmt;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How storage is opened. Every bound has a value: none is infinite.
#[derive(Debug, Clone)]
pub struct StorageSettings {
    /// Where: `sqlite://path`, `postgres://…` or `mysql://…`.
    pub url: String,
    /// The password of a server's user, where it isn't in the URL.
    pub password: Option<Password>,
    /// Whether a schema that is behind is migrated.
    pub migrate: bool,
    /// The service's context; another one is refused once the database belongs to one.
    pub context: String,
    /// The number of partitions; another one is refused after the first start.
    pub partitions: u32,
    /// How many log writers there are, each with a connection; SQLite has one in any case.
    pub writers: u32,
    /// How many connections read at once.
    pub readers: u32,
    /// What a commit survives.
    pub durability: Durability,
    /// What one batch of the log writer holds at most.
    pub batch: BatchLimits,
    /// What waits before each log writer at most; beyond it appends are refused as busy.
    pub queue: QueueLimits,
    /// How long connecting may take, and waiting for a connection that is free.
    pub connect_timeout: Duration,
    /// How long a statement may take: a batched read as a whole, and a write's wait for another
    /// process that holds a lock of the database. A transaction that writes is never cut.
    pub statement_timeout: Duration,
    /// Ends the wait for a database that is away.
    pub give_up: CancellationToken,
}

impl StorageSettings {
    /// The defaults, for a database and the context it belongs to.
    pub fn new(url: impl Into<String>, context: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            migrate: true,
            context: context.into(),
            partitions: 64,
            writers: 2,
            readers: 4,
            durability: Durability::Full,
            batch: BatchLimits::default(),
            queue: QueueLimits::default(),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
            give_up: CancellationToken::new(),
        }
    }
}

/// A password, which nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes one.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(redacted)")
    }
}

/// What an acknowledged commit survives on SQLite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power: every batch is synced to disk before it is acknowledged.
    #[default]
    Full,
    /// The death of the process, but not the loss of power, which may take the last commits.
    Normal,
}

/// What one batch holds at most.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Rows: log entries, snapshots and checkpoints together.
    pub rows: usize,
    /// Bytes of these, roughly.
    pub bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self {
            rows: 512,
            bytes: 8 * 1024 * 1024,
        }
    }
}

/// What waits before a log writer at most.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// Appends and saves.
    pub entries: usize,
    /// Bytes of the appends among them, roughly.
    pub bytes: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            entries: 8192,
            bytes: 128 * 1024 * 1024,
        }
    }
}
