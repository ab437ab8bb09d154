//! What a verification finds, and tells while it goes on.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many findings are kept; the rest is counted.
const FINDINGS_MAX: usize = 1000;

/// What is being looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The database's own check of its files.
    Files,
    /// The log, entry by entry.
    Log,
    /// Request ids.
    Requests,
    /// Checkpoints.
    Checkpoints,
    /// Snapshots, one by one.
    Snapshots,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being looked at.
    pub step: Step,
    /// How many of it are done.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// One thing that is wrong. An aggregate is named `tenant/type/id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(
    tag = "finding",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Finding {
    /// The database itself says that its files are damaged.
    #[error("the database finds its files damaged: {text}")]
    Files {
        /// What it says.
        text: String,
    },
    /// Positions aren't contiguous from 1 (R80).
    #[error("partition {partition}: position {found} follows where {expected} should")]
    PositionGap {
        /// The partition.
        partition: u32,
        /// Which position should follow.
        expected: u64,
        /// Which does.
        found: u64,
    },
    /// The head isn't the newest position (R80).
    #[error("partition {partition}: its head is {head}, its newest entry {newest}")]
    HeadDiffers {
        /// The partition.
        partition: u32,
        /// What the head says.
        head: u64,
        /// What the log holds.
        newest: u64,
    },
    /// Entries lie in partitions that don't exist, or at positions before the first.
    #[error("{entries} entries lie in partitions, or at positions, that this log doesn't have")]
    StrayPartition {
        /// How many.
        entries: u64,
    },
    /// An entry lies in a partition that isn't its aggregate's.
    #[error("{aggregate} version {version}: it lies in partition {found} instead of {expected}")]
    Misplaced {
        /// The aggregate.
        aggregate: String,
        /// The entry's version.
        version: u64,
        /// Where it should lie.
        expected: u32,
        /// Where it does.
        found: u32,
    },
    /// The versions of an aggregate aren't contiguous from 1, in the order of positions.
    #[error("{aggregate}: version {found} follows where {expected} should")]
    VersionGap {
        /// The aggregate.
        aggregate: String,
        /// Which version should follow.
        expected: u64,
        /// Which does.
        found: u64,
    },
    /// An entry can't be read.
    #[error("partition {partition} position {position}: the entry can't be read: {reason}")]
    EntryUnreadable {
        /// The partition.
        partition: u32,
        /// The position.
        position: u64,
        /// Why not.
        reason: String,
    },
    /// One request has committed more than once (R44).
    #[error(
        "request {request_id} of tenant {tenant}, type {aggregate_type}, committed {times} times"
    )]
    RequestTwice {
        /// The tenant.
        tenant: String,
        /// The aggregate type.
        aggregate_type: String,
        /// The request.
        request_id: String,
        /// How often.
        times: u64,
    },
    /// One command has committed more than once.
    #[error("command {command_id} committed {times} times")]
    CommandTwice {
        /// The command.
        command_id: String,
        /// How often.
        times: u64,
    },
    /// A unique key of the log isn't there, so nothing refuses a second commit of its kind (R44).
    #[error(
        "the unique key {key} is missing: a request or a version may commit twice; stop every node"
    )]
    KeyMissing {
        /// Its name.
        key: &'static str,
    },
    /// A column holds what is never written there.
    #[error("{place}: {column}: {reason}")]
    Odd {
        /// Where.
        place: String,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A partition with entries has no head.
    #[error("partition {partition} has entries and no head")]
    HeadMissing {
        /// The partition.
        partition: u32,
    },
    /// An entry is older than the one before it: a clock was set back. Reads by time may be off.
    #[error("partition {partition} position {position}: its time {time} is before {before}")]
    TimeStepsBack {
        /// The partition.
        partition: u32,
        /// The position.
        position: u64,
        /// When it was committed.
        time: i64,
        /// When the one before it was.
        before: i64,
    },
    /// A checkpoint is beyond the head of its partition.
    #[error(
        "subscription {subscription}, partition {partition}: its checkpoint is {position}, the head {head}"
    )]
    CheckpointBeyondHead {
        /// The subscription.
        subscription: String,
        /// The partition.
        partition: u32,
        /// The checkpoint.
        position: u64,
        /// The head.
        head: u64,
    },
    /// A snapshot can't be read.
    #[error("a snapshot after {after} can't be read: {reason}")]
    SnapshotUnreadable {
        /// The aggregate before it in the order of keys.
        after: String,
        /// Why not.
        reason: String,
    },
    /// A snapshot holds a version that the log doesn't.
    #[error("{aggregate}: its snapshot holds version {version}, the log ends at {newest}")]
    SnapshotBeyondLog {
        /// The aggregate.
        aggregate: String,
        /// The snapshot's version.
        version: u64,
        /// The log's newest.
        newest: u64,
    },
    /// A snapshot names another place than its version has in the log.
    #[error("{aggregate}: its snapshot of version {version} names another place in the log")]
    SnapshotMisplaced {
        /// The aggregate.
        aggregate: String,
        /// The snapshot's version.
        version: u64,
    },
    /// The log replayed gives another state than the snapshot holds.
    #[error("{aggregate}: its snapshot of version {version} differs from the log at '{path}'")]
    SnapshotDiffers {
        /// The aggregate.
        aggregate: String,
        /// The snapshot's version.
        version: u64,
        /// Where in the state, or which of the system's facts.
        path: String,
    },
    /// A snapshot's recent requests aren't the log's (R41).
    #[error("{aggregate}: the requests in its snapshot of version {version}: {reason}")]
    SnapshotRequests {
        /// The aggregate.
        aggregate: String,
        /// The snapshot's version.
        version: u64,
        /// What is wrong with them.
        reason: String,
    },
    /// A snapshot lacks recent requests; they are looked up in the log instead.
    #[error("{aggregate}: its snapshot of version {version} lacks requests up to {written}")]
    SnapshotRequestsMissing {
        /// The aggregate.
        aggregate: String,
        /// The snapshot's version.
        version: u64,
        /// Up to which version it should have them.
        written: u64,
    },
    /// The log can't be replayed.
    #[error("{aggregate}: the log can't be replayed to version {version}: {reason}")]
    ReplayFailed {
        /// The aggregate.
        aggregate: String,
        /// Up to which version.
        version: u64,
        /// Why not.
        reason: String,
    },
}

/// What was looked at, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How many log entries were read.
    pub entries: u64,
    /// How many aggregates they belong to.
    pub aggregates: u64,
    /// How many snapshots were looked at.
    pub snapshots: u64,
    /// How many of them were compared with the log replayed.
    pub replayed: u64,
    /// How many weren't, by why: their type isn't registered here, or they are of another state
    /// revision, which the kernel ignores (R50).
    pub skipped: BTreeMap<&'static str, u64>,
    /// How many checkpoints were looked at.
    pub checkpoints: u64,
    /// What is wrong, up to a bound.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub more: u64,
    /// What is odd and does no harm, up to the same bound.
    pub warnings: Vec<Finding>,
    /// How many more of those there are.
    pub more_warnings: u64,
}

impl Report {
    /// Whether nothing is wrong; there may be warnings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn warn(&mut self, finding: Finding) {
        if self.warnings.len() < FINDINGS_MAX {
            self.warnings.push(finding);
        } else {
            self.more_warnings += 1;
        }
    }

    pub(super) fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }
}
