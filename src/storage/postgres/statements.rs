//! PostgreSQL's statements: those that write, and how it says those that read.

use std::sync::{LazyLock, OnceLock};

use wow_migrations::names::{checkpoint, commit_log, log_partition, snapshot};

use super::super::sql::{Cell, Grammar, Keys, Texts};

/// Takes the lock of the schema if it is free: a number that nobody else is likely to use.
pub(super) const TRY_LOCK: &str = "select pg_try_advisory_lock(8389754676633367919)";

/// The unique indexes that are missing or were left half made.
pub(super) const DAMAGES: &str = "select 'the unique index ' || i.name || ' of ' || i.owner || \
     ' is missing or not valid' \
     from (values ('pk_commit_log', 'commit_log'), ('uk_commit_log_version', 'commit_log'), \
     ('uk_commit_log_request', 'commit_log'), ('log_partition_pkey', 'log_partition'), \
     ('pk_snapshot', 'snapshot'), ('pk_checkpoint', 'checkpoint')) as i(name, owner) \
     where not exists (select 1 from pg_index as x join pg_class as c on c.oid = x.indexrelid \
     join pg_namespace as n on n.oid = c.relnamespace \
     where n.nspname = current_schema() and c.relname = i.name \
     and x.indrelid = to_regclass(quote_ident(i.owner)) \
     and x.indisunique and x.indisvalid and x.indisready)";

/// The statements that read.
pub(super) static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts::new(&Postgres));

#[derive(Debug)]
struct Postgres;

impl Grammar for Postgres {
    fn keys(&self, cells: &[Cell]) -> Keys {
        let cells = cells.iter().enumerate().map(|(index, cell)| match cell {
            Cell::Text => format!("q.value ->> {index}"),
            Cell::Number => format!("(q.value ->> {index})::bigint"),
        });
        Keys {
            table: "json_array_elements($1::text::json) with ordinality as q(value, n)".to_owned(),
            index: "q.n - 1",
            cells: cells.map(|cell| format!("({cell})")).collect(),
        }
    }

    fn join(&self) -> &'static str {
        "join"
    }

    fn joined(&self, outer: &str, table: &str, index: &str, on: &str) -> String {
        // Two indexes begin alike, and while a table is small one seems as good as the other. Only
        // the one that ends in the range has its order.
        let order = match index {
            commit_log::UNIQUE_VERSION => " order by c.version",
            commit_log::UNIQUE_REQUEST => " order by c.request_id",
            "primary" => " order by c.position",
            _ => "",
        };
        // The offset keeps it a look-up for each key. As a plain join it may be turned round while
        // a table is small, and that plan would be kept when it is large.
        format!(
            "{outer} cross join lateral \
             (select * from {table} as c where {on}{order} offset 0) as c"
        )
    }

    fn ends(&self, column: &str, cell: &str) -> String {
        // A range, so that there is an order to ask for.
        format!("{column} >= {cell} and {column} <= {cell}")
    }

    fn column(&self, table: &str, column: &str) -> String {
        match column {
            // An integer, where all other numbers are bigints.
            "partition_no" => format!("{table}.{column}::bigint"),
            _ => format!("{table}.{column}"),
        }
    }
}

/// What a batch holds, for each combination has a statement of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) entries: bool,
    pub(super) snapshots: bool,
    pub(super) checkpoints: bool,
}

/// The statement that writes a batch of such parts, whatever its size.
///
/// Its parameters are the time that no commit may be before, and for each part arrays, one a
/// column. Its rows are, for each partition, its number, its head before, and the time of all its
/// commits; and each checkpoint that moved.
///
/// What it does has an order, which keeps two that run at once from waiting for each other:
/// the heads are locked by their number, then entries go in by their request, snapshots and
/// checkpoints by their keys. Each step counts the rows of the one before, for nothing else
/// makes PostgreSQL run them one after the other. The clock is read under the heads' locks, so
/// that times follow positions.
pub(super) fn write(parts: Parts) -> &'static str {
    static ALL: [OnceLock<String>; 8] = [const { OnceLock::new() }; 8];
    let index = usize::from(parts.entries)
        + 2 * usize::from(parts.snapshots)
        + 4 * usize::from(parts.checkpoints);
    ALL[index].get_or_init(|| write_text(parts))
}

/// Numbers the parameters of a statement, in the order in which they are bound.
struct Parameters(usize);

impl Parameters {
    fn next(&mut self, kind: &str) -> String {
        self.0 += 1;
        format!("${}::{kind}", self.0)
    }

    /// Arrays as a table, numbered in `n`.
    fn table(&mut self, name: &str, columns: &[(&str, &str)]) -> String {
        let arrays: Vec<_> = columns
            .iter()
            .map(|(_, kind)| self.next(&format!("{kind}[]")))
            .collect();
        let names: Vec<_> = columns.iter().map(|(column, _)| *column).collect();
        format!(
            "unnest({}) with ordinality as {name}({}, n)",
            arrays.join(", "),
            names.join(", ")
        )
    }
}

fn write_text(parts: Parts) -> String {
    let mut parameters = Parameters(0);
    let newest_at = parameters.next("bigint");
    let now = format!(
        "greatest({newest_at}, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now"
    );
    let mut steps = Vec::new();
    let mut result = Vec::new();
    let mut last = None;
    if parts.entries {
        let (locked, raised, heads_before) = raise_heads(&mut parameters);
        steps.extend([locked, raised]);
        steps.push(format!(
            "stamped as materialized (select {now}, {heads_before} from raised)"
        ));
        result.push(
            "select r.partition_no::bigint, r.before, s.now, null::text \
             from raised as r cross join stamped as s",
        );
    } else {
        steps.push(format!("stamped as materialized (select {now})"));
    }
    if parts.entries {
        steps.push(insert_commits(&mut parameters));
        last = Some("inserted");
    }
    if parts.snapshots {
        steps.push(save_snapshots(&mut parameters, last));
        last = Some("saved");
    }
    if parts.checkpoints {
        steps.push(move_checkpoints(&mut parameters, last));
        result.push("select m.partition_no::bigint, null::bigint, null::bigint, m.subscription from moved as m");
    }
    if result.is_empty() {
        result.push("select null::bigint, null::bigint, null::bigint, null::text where false");
    }
    format!("with {} {}", steps.join(", "), result.join(" union all "))
}

/// Locks the heads in the order of their numbers, raises them by the rows about to be inserted,
/// and gathers what they were, in this order: a row finds its head's by its place there, which a
/// join with every head would take a quarter of the statement's time for. Where a head is
/// missing, there are none.
fn raise_heads(parameters: &mut Parameters) -> (String, String, String) {
    let heads = log_partition::TABLE;
    let partitions = format!("${}::int[]", parameters.0 + 1);
    let asked = parameters.table("q", &[("partition_no", "int"), ("rows", "bigint")]);
    (
        format!(
            "locked as materialized (select p.partition_no, q.rows from {asked} \
             join {heads} as p on p.partition_no = q.partition_no \
             order by p.partition_no for update of p)"
        ),
        format!(
            "raised as (update {heads} as p set head = p.head + l.rows from locked as l \
             where p.partition_no = l.partition_no \
             returning p.partition_no, p.head - l.rows as before)"
        ),
        format!(
            "case when count(*) = cardinality({partitions}) \
             then array_agg(before order by partition_no) end as heads"
        ),
    )
}

/// The columns of an entry that come with it; `head` is the place of its partition among those of
/// the batch, and `position` its own among the entries of that.
pub(super) const COMMIT_COLUMNS: [(&str, &str); 17] = [
    ("head", "int"),
    ("partition_no", "int"),
    ("position", "bigint"),
    ("tenant_id", "text"),
    ("aggregate_type", "text"),
    ("aggregate_id", "text"),
    ("version", "bigint"),
    ("request_id", "text"),
    ("command_id", "text"),
    ("command_type", "text"),
    ("principal", "text"),
    ("owner_id", "text"),
    ("space_id", "text"),
    ("origin", "text"),
    ("events", "text"),
    ("result", "text"),
    ("headers", "text"),
];

/// An entry whose partition there isn't has no position, so it is refused, and never skipped.
fn insert_commits(parameters: &mut Parameters) -> String {
    let entries = parameters.table("e", &COMMIT_COLUMNS);
    let values: Vec<_> = commit_log::COLUMNS
        .iter()
        .map(|column| match *column {
            "position" => "s.heads[e.head] + e.position".to_owned(),
            "committed_at" => "s.now".to_owned(),
            _ => format!("e.{column}"),
        })
        .collect();
    format!(
        "inserted as (insert into {table} ({columns}) select {values} from {entries} \
         cross join stamped as s order by e.n returning 1)",
        table = commit_log::TABLE,
        columns = commit_log::COLUMNS.join(", "),
        values = values.join(", "),
    )
}

/// The columns of a snapshot that come with it.
pub(super) const SNAPSHOT_COLUMNS: [(&str, &str); 18] = [
    ("tenant_id", "text"),
    ("aggregate_type", "text"),
    ("aggregate_id", "text"),
    ("version", "bigint"),
    ("partition_no", "int"),
    ("position", "bigint"),
    ("owner_id", "text"),
    ("space_id", "text"),
    ("deleted", "boolean"),
    ("tags", "text"),
    ("state", "text"),
    ("state_revision", "bigint"),
    ("recent_requests", "text"),
    ("first_operator", "text"),
    ("operator", "text"),
    ("first_event_time", "bigint"),
    ("event_time", "bigint"),
    ("event_id", "text"),
];

/// Each where it is newer (R84). Requests that aren't given stay.
fn save_snapshots(parameters: &mut Parameters, last: Option<&str>) -> String {
    let table = snapshot::TABLE;
    let key = &snapshot::PRIMARY_KEY_COLUMNS;
    let snapshots = parameters.table("q", &SNAPSHOT_COLUMNS);
    let values: Vec<_> = snapshot::COLUMNS
        .iter()
        .map(|column| match *column {
            "snapshot_time" => "s.now".to_owned(),
            _ => format!("q.{column}"),
        })
        .collect();
    let assignments: Vec<_> = snapshot::COLUMNS
        .iter()
        .filter(|column| !key.contains(column))
        .map(|column| match *column {
            "recent_requests" => {
                format!("{column} = coalesce(excluded.{column}, {table}.{column})")
            }
            _ => format!("{column} = excluded.{column}"),
        })
        .collect();
    format!(
        "saved as (insert into {table} ({columns}) select {values} from {snapshots} \
         cross join stamped as s {after} order by q.n \
         on conflict ({key}) do update set {assignments} \
         where (excluded.version, excluded.state_revision) > \
         ({table}.version, {table}.state_revision) returning 1)",
        columns = snapshot::COLUMNS.join(", "),
        values = values.join(", "),
        after = once_done(last),
        key = key.join(", "),
        assignments = assignments.join(", "),
    )
}

/// The columns of a checkpoint that come with it.
pub(super) const CHECKPOINT_COLUMNS: [(&str, &str); 5] = [
    ("subscription", "text"),
    ("partition_no", "int"),
    ("position", "bigint"),
    ("epoch", "bigint"),
    ("generation", "bigint"),
];

/// Each forward, in its generation and epoch or a newer one (R81).
fn move_checkpoints(parameters: &mut Parameters, last: Option<&str>) -> String {
    let checkpoints = parameters.table("q", &CHECKPOINT_COLUMNS);
    format!(
        "moved as (insert into {table} (subscription, partition_no, position, epoch, generation, \
         updated_at) select q.subscription, q.partition_no, q.position, q.epoch, q.generation, \
         s.now from {checkpoints} cross join stamped as s {after} order by q.n \
         on conflict (subscription, partition_no) do update set position = excluded.position, \
         epoch = excluded.epoch, generation = excluded.generation, \
         updated_at = excluded.updated_at \
         where excluded.epoch >= {table}.epoch and (excluded.generation > {table}.generation \
         or (excluded.generation = {table}.generation \
         and excluded.position >= {table}.position)) \
         returning subscription, partition_no)",
        table = checkpoint::TABLE,
        after = once_done(last),
    )
}

/// What makes a step wait for another, whose rows it counts.
fn once_done(step: Option<&str>) -> String {
    step.map_or_else(String::new, |step| {
        format!("where (select count(*) from {step}) >= 0")
    })
}
