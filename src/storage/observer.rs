//! What storage tells about itself while it works.

use std::fmt;
use std::time::Duration;

/// Hears what storage does. Called on storage's own tasks: an observer counts, and returns.
pub trait StorageObserver: fmt::Debug + Send + Sync + 'static {
    /// A log writer has ended a batch, one way or the other.
    fn batch_written(&self, _batch: &WrittenBatch) {}

    /// This much was still waiting for a log writer when it began a batch.
    fn writer_queue(&self, _waiting: usize) {}

    /// One query has answered this many questions.
    fn batch_read(&self, _read: &ReadBatch) {}

    /// A statement has run; begin and commit aren't counted.
    fn statement(&self, _elapsed: Duration) {}
}

/// A batch of the log writer.
#[derive(Debug, Clone)]
pub struct WrittenBatch {
    /// How many log entries it held.
    pub entries: usize,
    /// How many snapshots, after those of one aggregate were taken together.
    pub snapshots: usize,
    /// How many checkpoints.
    pub checkpoints: usize,
    /// From the begin of its transaction to its end.
    pub elapsed: Duration,
    /// How it ended.
    pub outcome: BatchOutcome,
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchOutcome {
    /// It is in the database.
    Committed,
    /// A unique key was taken; what can be is tried again.
    Conflict,
    /// The database refuses an entry whenever it comes.
    Refused,
    /// The database couldn't be reached, or refused for now.
    Unavailable,
    /// Whether it is in the database is not known (R54).
    Unknown,
}

impl BatchOutcome {
    /// Its name as a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }
}

/// A batch of questions that one query answered.
#[derive(Debug, Clone)]
pub struct ReadBatch {
    /// What was asked.
    pub kind: ReadKind,
    /// How many questions.
    pub questions: usize,
    /// How long the answer took.
    pub elapsed: Duration,
    /// Whether there was one.
    pub answered: bool,
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadKind {
    /// The commit of a request id (R40).
    Request,
    /// What a cold lane starts from (R50).
    History,
    /// An aggregate's newest version (R58).
    Probe,
    /// A page of an aggregate's commits.
    Aggregate,
    /// A page of a partition.
    Partition,
    /// A snapshot.
    Snapshot,
    /// The versions that snapshots hold (R63).
    SnapshotVersion,
    /// The newest positions of partitions.
    Head,
    /// Checkpoints.
    Checkpoint,
}

impl ReadKind {
    /// Its name as a metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::History => "history",
            Self::Probe => "probe",
            Self::Aggregate => "aggregate",
            Self::Partition => "partition",
            Self::Snapshot => "snapshot",
            Self::SnapshotVersion => "snapshot_version",
            Self::Head => "head",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl StorageObserver for Unobserved {}
