//! The statements that read, for every database.
//!
//! In each, `q` is the table of keys and the outer one of a join, and the log is found through a
//! unique index, never scanned. Each database holds its own to that in a test.

use wow_migrations::names::{checkpoint, commit_log, log_partition, snapshot};

use super::super::rows::REQUEST_COLUMNS;
use super::grammar::Cell::{Number, Text};
use super::grammar::{Cell, Grammar, columns};

/// What is asked, in a database's SQL; each is written once, when it is first used.
#[derive(Debug)]
pub(in crate::storage) struct Texts {
    /// The commits of requests: `[[tenant, type, request], …]` → index, commit (R42).
    pub(in crate::storage) requests: String,
    /// Commits of aggregates: `[[tenant, type, id, after, up to], …]` → index, commit.
    pub(in crate::storage) aggregate_commits: String,
    /// Requests of aggregates, without the events: keys likewise → index, request (R41).
    pub(in crate::storage) aggregate_requests: String,
    /// Commits of partitions: `[[partition, after, up to], …]` → index, commit.
    pub(in crate::storage) partition_commits: String,
    /// The newest versions: `[[tenant, type, id], …]` → index, version (R58).
    pub(in crate::storage) newest_versions: String,
    /// Snapshots: `[[tenant, type, id], …]` → index, snapshot.
    pub(in crate::storage) snapshots: String,
    /// The versions they hold: `[[tenant, type, id], …]` → index, version (R63).
    pub(in crate::storage) snapshot_versions: String,
    /// The newest position of every partition.
    pub(in crate::storage) heads: String,
    /// The checkpoints of subscriptions: `[[subscription], …]` → checkpoint.
    pub(in crate::storage) checkpoints: String,
    /// Which entries meet a row: `[[tenant, type, id, version, request], …]` → index, request
    /// taken, version taken.
    pub(in crate::storage) taken: String,
    /// When the newest commit of any partition was taken; null in an empty log.
    pub(in crate::storage) newest_time: String,
}

impl Texts {
    /// Writes them.
    pub(in crate::storage) fn new(grammar: &impl Grammar) -> Self {
        let log = commit_log::TABLE;
        let commit = columns(grammar, "c", &commit_log::COLUMNS);
        let request = columns(grammar, "c", &REQUEST_COLUMNS);
        Self {
            requests: of_request(grammar, &commit),
            aggregate_commits: of_aggregate(grammar, &commit),
            aggregate_requests: of_aggregate(grammar, &request),
            partition_commits: of_partition(grammar, &commit),
            newest_versions: newest_versions(grammar),
            snapshots: of_snapshot(grammar, &columns(grammar, "c", &snapshot::COLUMNS)),
            snapshot_versions: of_snapshot(grammar, "c.version"),
            heads: format!(
                "select {} from {} as p",
                columns(grammar, "p", &log_partition::COLUMNS),
                log_partition::TABLE
            ),
            checkpoints: checkpoints(grammar),
            taken: taken(grammar),
            newest_time: format!(
                "select max(c.committed_at) from {}",
                grammar.joined(
                    &format!("{} as p", log_partition::TABLE),
                    log,
                    "",
                    "c.partition_no = p.partition_no and c.position = p.head",
                )
            ),
        }
    }
}

/// The index of each key, and what a table has for it.
fn joined(
    grammar: &impl Grammar,
    table: &str,
    index: &str,
    columns: &str,
    cells: &[Cell],
    on: impl Fn(&[String]) -> String,
) -> String {
    let keys = grammar.keys(cells);
    let rows = grammar.joined(&keys.table, table, index, &on(&keys.cells));
    format!("select {}, {columns} from {rows}", keys.index)
}

fn is_aggregate(cells: &[String]) -> String {
    format!(
        "c.tenant_id = {} and c.aggregate_type = {} and c.aggregate_id = {}",
        cells[0], cells[1], cells[2]
    )
}

fn of_request(grammar: &impl Grammar, columns: &str) -> String {
    let cells = [Text, Text, Text];
    let (log, index) = (commit_log::TABLE, commit_log::UNIQUE_REQUEST);
    joined(grammar, log, index, columns, &cells, |cells| {
        format!(
            "c.tenant_id = {} and c.aggregate_type = {} and {}",
            cells[0],
            cells[1],
            grammar.ends("c.request_id", &cells[2])
        )
    })
}

fn of_aggregate(grammar: &impl Grammar, columns: &str) -> String {
    let cells = [Text, Text, Text, Number, Number];
    let (log, index) = (commit_log::TABLE, commit_log::UNIQUE_VERSION);
    joined(grammar, log, index, columns, &cells, |cells| {
        format!(
            "{} and {} and {} and c.version > {} and c.version <= {}",
            grammar.fixes("c.tenant_id", &cells[0]),
            grammar.fixes("c.aggregate_type", &cells[1]),
            grammar.fixes("c.aggregate_id", &cells[2]),
            cells[3],
            cells[4]
        )
    })
}

fn of_partition(grammar: &impl Grammar, columns: &str) -> String {
    let cells = [Number, Number, Number];
    let (log, index) = (commit_log::TABLE, "primary");
    joined(grammar, log, index, columns, &cells, |cells| {
        format!(
            "{} and c.position > {} and c.position <= {}",
            grammar.fixes("c.partition_no", &cells[0]),
            cells[1],
            cells[2]
        )
    })
}

fn of_snapshot(grammar: &impl Grammar, columns: &str) -> String {
    let cells = [Text, Text, Text];
    joined(grammar, snapshot::TABLE, "", columns, &cells, is_aggregate)
}

fn newest_versions(grammar: &impl Grammar) -> String {
    let keys = grammar.keys(&[Text, Text, Text]);
    format!(
        "select {index}, coalesce((select c.version from {log} as c where {aggregate} \
         order by c.version desc limit 1), 0) from {keys}",
        index = keys.index,
        log = commit_log::TABLE,
        aggregate = is_aggregate(&keys.cells),
        keys = keys.table,
    )
}

fn checkpoints(grammar: &impl Grammar) -> String {
    let keys = grammar.keys(&[Text]);
    let on = format!("c.subscription = {}", keys.cells[0]);
    let rows = grammar.joined(&keys.table, checkpoint::TABLE, "", &on);
    let columns = columns(grammar, "c", &checkpoint::COLUMNS);
    format!("select {columns} from {rows}")
}

// Looked up, and not asked whether they exist: PostgreSQL may answer that from a table of all rows.
fn taken(grammar: &impl Grammar) -> String {
    let keys = grammar.keys(&[Text, Text, Text, Number, Text]);
    let cells = &keys.cells;
    format!(
        "select {index}, \
         (select c.request_id from {log} as c where c.tenant_id = {tenant} \
         and c.aggregate_type = {aggregate_type} and {request} \
         order by c.request_id limit 1) is not null, \
         (select c.version from {log} as c where {aggregate} and {version} \
         order by c.version limit 1) is not null \
         from {keys}",
        index = keys.index,
        log = commit_log::TABLE,
        tenant = cells[0],
        aggregate_type = cells[1],
        request = grammar.ends("c.request_id", &cells[4]),
        aggregate = is_aggregate(cells),
        version = grammar.ends("c.version", &cells[3]),
        keys = keys.table,
    )
}
