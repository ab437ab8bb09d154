//! SQLite's statements: those that write, and how it says those that read.

use std::sync::LazyLock;

use wow_migrations::names::{checkpoint, commit_log, log_partition, snapshot};

use super::super::sql::{Cell, Grammar, Keys, Texts, insert};

/// A statement that is written once, when it is first used.
pub(super) type Text = LazyLock<String>;

/// The statements that read. SQLite reads `cross join` as an order of the tables.
pub(super) static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::new(&Sqlite));

#[derive(Debug)]
struct Sqlite;

impl Grammar for Sqlite {
    fn keys(&self, cells: &[Cell]) -> Keys {
        let cells = (0..cells.len()).map(|index| format!("q.value ->> {index}"));
        Keys {
            table: "json_each($1) as q".to_owned(),
            index: "q.key",
            cells: cells.collect(),
        }
    }

    fn join(&self) -> &'static str {
        "cross join"
    }
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

/// What SQLite finds wrong with the file, or `ok`: tables, indexes, and both against each other.
pub(super) static INTEGRITY: Text = Text::new(|| "pragma integrity_check(100)".to_owned());

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
            RAISE_HEADS.as_str(),
            &MOVE_CHECKPOINTS,
            &TEXTS.taken,
            &TEXTS.requests,
            &TEXTS.aggregate_commits,
            &TEXTS.aggregate_requests,
            &TEXTS.partition_commits,
            &TEXTS.newest_versions,
            &TEXTS.snapshots,
            &TEXTS.snapshot_versions,
            &TEXTS.checkpoints,
            &TEXTS.newest_time,
        ];
        for text in texts {
            let explain = format!("explain query plan {text}");
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
            assert!(!scans, "{text}: {steps:#?}");
        }
    }
}
