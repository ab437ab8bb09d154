//! SQLite's statements. One text serves any number of keys: they come as one JSON parameter,
//! which `json_each` makes rows of, so every statement is prepared once.
//!
//! In each, `q` is the table of keys, `cross join` keeps it the outer one (SQLite reads the word
//! as an order), and the log is found through a unique index, never scanned. Ids travel as JSON
//! strings, and come out byte for byte as they went in.

use std::sync::LazyLock;

use wow_migrations::names::{checkpoint, commit_log, log_partition, snapshot};

use super::super::rows::REQUEST_COLUMNS;

/// A statement that is written once, when it is first used.
pub(super) type Text = LazyLock<String>;

fn columns(table: &str, columns: &[&str]) -> String {
    let all: Vec<_> = columns
        .iter()
        .map(|column| format!("{table}.{column}"))
        .collect();
    all.join(", ")
}

/// Raises heads by the rows about to be inserted: `[[partition, rows], …]` → partition, new head.
pub(super) static RAISE_HEADS: Text = Text::new(|| {
    format!(
        "update {table} set head = head + q.rows \
         from (select value ->> 0 as partition_no, value ->> 1 as rows from json_each($1)) as q \
         where {table}.partition_no = q.partition_no \
         returning {table}.partition_no, {table}.head",
        table = log_partition::TABLE,
    )
});

/// Which entries meet a row: `[[tenant, type, id, version, request], …]` → index, request taken,
/// version taken.
pub(super) static TAKEN: Text = Text::new(|| {
    format!(
        "select q.key, \
         exists (select 1 from {table} as c where c.tenant_id = q.value ->> 0 \
         and c.aggregate_type = q.value ->> 1 and c.request_id = q.value ->> 4), \
         exists (select 1 from {table} as c where c.tenant_id = q.value ->> 0 \
         and c.aggregate_type = q.value ->> 1 and c.aggregate_id = q.value ->> 2 \
         and c.version = q.value ->> 3) \
         from json_each($1) as q",
        table = commit_log::TABLE,
    )
});

/// Moves checkpoints forward: `[[subscription, partition, position, epoch, generation], …]` and
/// the time → those that moved (R81).
pub(super) static MOVE_CHECKPOINTS: Text = Text::new(|| {
    format!(
        "insert into {table} (subscription, partition_no, position, epoch, generation, updated_at) \
         select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, $2 \
         from json_each($1) where true \
         on conflict (subscription, partition_no) do update set position = excluded.position, \
         epoch = excluded.epoch, generation = excluded.generation, \
         updated_at = excluded.updated_at \
         where excluded.epoch >= {table}.epoch and (excluded.generation > {table}.generation \
         or (excluded.generation = {table}.generation \
         and excluded.position >= {table}.position)) \
         returning subscription, partition_no",
        table = checkpoint::TABLE,
    )
});

/// The commits of requests: `[[tenant, type, request], …]` → index, commit (R42).
pub(super) static FIND_REQUESTS: Text = Text::new(|| {
    format!(
        "select q.key, {columns} from json_each($1) as q cross join {table} as c \
         on c.tenant_id = q.value ->> 0 and c.aggregate_type = q.value ->> 1 \
         and c.request_id = q.value ->> 2",
        columns = columns("c", &commit_log::COLUMNS),
        table = commit_log::TABLE,
    )
});

fn of_aggregate(columns: &str) -> String {
    format!(
        "select q.key, {columns} from json_each($1) as q cross join {table} as c \
         on c.tenant_id = q.value ->> 0 and c.aggregate_type = q.value ->> 1 \
         and c.aggregate_id = q.value ->> 2 \
         and c.version > q.value ->> 3 and c.version <= q.value ->> 4",
        table = commit_log::TABLE,
    )
}

/// Commits of aggregates: `[[tenant, type, id, after, up to], …]` → index, commit.
pub(super) static AGGREGATE_COMMITS: Text =
    Text::new(|| of_aggregate(&columns("c", &commit_log::COLUMNS)));

/// Requests of aggregates, without the events: `[[tenant, type, id, after, up to], …]` → index,
/// request (R41).
pub(super) static AGGREGATE_REQUESTS: Text =
    Text::new(|| of_aggregate(&columns("c", &REQUEST_COLUMNS)));

/// Commits of partitions: `[[partition, after, up to], …]` → index, commit.
pub(super) static PARTITION_COMMITS: Text = Text::new(|| {
    format!(
        "select q.key, {columns} from json_each($1) as q cross join {table} as c \
         on c.partition_no = q.value ->> 0 \
         and c.position > q.value ->> 1 and c.position <= q.value ->> 2",
        columns = columns("c", &commit_log::COLUMNS),
        table = commit_log::TABLE,
    )
});

/// The newest versions: `[[tenant, type, id], …]` → index, version (R58).
pub(super) static NEWEST_VERSIONS: Text = Text::new(|| {
    format!(
        "select q.key, (select coalesce(max(c.version), 0) from {table} as c where c.tenant_id = q.value ->> 0 \
         and c.aggregate_type = q.value ->> 1 and c.aggregate_id = q.value ->> 2) \
         from json_each($1) as q",
        table = commit_log::TABLE,
    )
});

fn snapshots(columns: &str) -> String {
    format!(
        "select q.key, {columns} from json_each($1) as q cross join {table} as s \
         on s.tenant_id = q.value ->> 0 and s.aggregate_type = q.value ->> 1 \
         and s.aggregate_id = q.value ->> 2",
        table = snapshot::TABLE,
    )
}

/// Snapshots: `[[tenant, type, id], …]` → index, snapshot.
pub(super) static SNAPSHOTS: Text = Text::new(|| snapshots(&columns("s", &snapshot::COLUMNS)));

/// The versions they hold: `[[tenant, type, id], …]` → index, version (R63).
pub(super) static SNAPSHOT_VERSIONS: Text = Text::new(|| snapshots("s.version"));

/// The newest position of every partition.
pub(super) static HEADS: Text =
    Text::new(|| format!("select partition_no, head from {}", log_partition::TABLE));

/// The checkpoints of subscriptions: `[subscription, …]` → checkpoint.
pub(super) static CHECKPOINTS: Text = Text::new(|| {
    format!(
        "select {columns} from json_each($1) as q cross join {table} as c \
         on c.subscription = q.value",
        columns = columns("c", &checkpoint::COLUMNS),
        table = checkpoint::TABLE,
    )
});

/// When the newest commit of any partition was taken; null in an empty log.
pub(super) static NEWEST_TIME: Text = Text::new(|| {
    format!(
        "select max(c.committed_at) from {heads} as p cross join {log} as c \
         on c.partition_no = p.partition_no and c.position = p.head",
        heads = log_partition::TABLE,
        log = commit_log::TABLE,
    )
});

/// What SQLite finds wrong with the file, or `ok`: tables, indexes, and both against each other.
pub(super) static INTEGRITY: Text = Text::new(|| "pragma integrity_check(100)".to_owned());

fn insert(table: &str, columns: &[&str], rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    format!(
        "insert into {table} ({}) values {}",
        columns.join(","),
        vec![row; rows].join(",")
    )
}

/// Inserts this many commits.
pub(super) fn insert_commits(rows: usize) -> String {
    insert(commit_log::TABLE, &commit_log::COLUMNS, rows)
}

/// Writes this many snapshots, each where it is newer (R84). Requests that aren't given stay.
pub(super) fn save_snapshots(rows: usize) -> String {
    let key = &snapshot::PRIMARY_KEY_COLUMNS;
    let assignments: Vec<_> = snapshot::COLUMNS
        .iter()
        .filter(|column| !key.contains(column))
        .map(|column| match *column {
            "recent_requests" => format!(
                "{column} = coalesce(excluded.{column}, {table}.{column})",
                table = snapshot::TABLE
            ),
            _ => format!("{column} = excluded.{column}"),
        })
        .collect();
    format!(
        "{insert} on conflict ({key}) do update set {assignments} \
         where (excluded.version, excluded.state_revision) > \
         ({table}.version, {table}.state_revision)",
        insert = insert(snapshot::TABLE, &snapshot::COLUMNS, rows),
        key = key.join(","),
        assignments = assignments.join(","),
        table = snapshot::TABLE,
    )
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]
mod tests {
    use sea_orm::{ConnectOptions, ConnectionTrait, Database, DbBackend, Statement};

    use super::*;

    #[tokio::test]
    async fn no_statement_scans_a_table_that_grows() {
        let mut options = ConnectOptions::new("sqlite::memory:");
        options.max_connections(1).sqlx_logging(false);
        let database = Database::connect(options).await.unwrap();
        wow_migrations::migrate(&database).await.unwrap();
        let texts = [
            &RAISE_HEADS,
            &TAKEN,
            &MOVE_CHECKPOINTS,
            &FIND_REQUESTS,
            &AGGREGATE_COMMITS,
            &AGGREGATE_REQUESTS,
            &PARTITION_COMMITS,
            &NEWEST_VERSIONS,
            &SNAPSHOTS,
            &SNAPSHOT_VERSIONS,
            &CHECKPOINTS,
            &NEWEST_TIME,
        ];
        for text in texts {
            let explain = format!("explain query plan {}", text.as_str());
            let statement = Statement::from_string(DbBackend::Sqlite, explain);
            let plan = database.query_all_raw(statement).await.unwrap();
            let steps: Vec<String> = plan
                .iter()
                .map(|row| row.try_get_by("detail").unwrap())
                .collect();
            let scans = steps.iter().any(|step| {
                // The keys that came as JSON, and the few heads.
                let harmless = ["SCAN json_each", "SCAN q ", "SCAN p", "SCAN CONSTANT ROW"];
                step.starts_with("SCAN") && !harmless.iter().any(|few| step.starts_with(few))
            });
            assert!(!scans, "{}: {steps:#?}", text.as_str());
        }
    }
}
