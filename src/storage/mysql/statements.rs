//! MySQL's statements: those that write, and how it says those that read.

use std::sync::LazyLock;

use wow_migrations::names::{checkpoint, commit_log, log_partition, snapshot};

use super::super::sql::{Cell, Grammar, Keys, Texts, insert};

/// Takes the lock of the schema if it is free. Names of locks are the server's, so it has the
/// database's in it; they are short.
pub(super) const TRY_LOCK: &str = "select get_lock(concat('wow-', sha1(database())), 0)";

/// The unique indexes that are missing.
pub(super) const DAMAGES: &str = "select concat('the unique index ', i.name, ' of ', i.owner, \
     ' is missing') from (select 'PRIMARY' as name, 'commit_log' as owner \
     union all select 'uk_commit_log_version', 'commit_log' \
     union all select 'uk_commit_log_request', 'commit_log' \
     union all select 'PRIMARY', 'log_partition' \
     union all select 'PRIMARY', 'snapshot' \
     union all select 'PRIMARY', 'checkpoint') as i \
     where not exists (select 1 from information_schema.statistics as s \
     where s.table_schema = database() and binary s.table_name = binary i.owner \
     and binary s.index_name = binary i.name and s.non_unique = 0)";

/// Which of the two servers: they differ in the name of the collation that compares bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Flavour {
    MySql,
    MariaDb,
}

impl Flavour {
    /// By what the server says its version is.
    pub(super) fn of(version: &str) -> Self {
        if version.contains("MariaDB") {
            Self::MariaDb
        } else {
            Self::MySql
        }
    }

    fn collation(self) -> &'static str {
        match self {
            Self::MySql => "utf8mb4_0900_bin",
            Self::MariaDb => "utf8mb4_nopad_bin",
        }
    }

    /// The statements that read.
    pub(super) fn texts(self) -> &'static Texts {
        static MYSQL: LazyLock<Texts> = LazyLock::new(|| Texts::new(&Flavour::MySql));
        static MARIADB: LazyLock<Texts> = LazyLock::new(|| Texts::new(&Flavour::MariaDb));
        match self {
            Self::MySql => &MYSQL,
            Self::MariaDb => &MARIADB,
        }
    }

    /// The statements that write.
    pub(super) fn writing(self) -> &'static WriteTexts {
        static MYSQL: LazyLock<WriteTexts> = LazyLock::new(|| WriteTexts::new(Flavour::MySql));
        static MARIADB: LazyLock<WriteTexts> = LazyLock::new(|| WriteTexts::new(Flavour::MariaDb));
        match self {
            Self::MySql => &MYSQL,
            Self::MariaDb => &MARIADB,
        }
    }
}

impl Grammar for Flavour {
    fn keys(&self, cells: &[Cell]) -> Keys {
        let collation = self.collation();
        let columns = cells.iter().enumerate().map(|(index, cell)| {
            let kind = match cell {
                Cell::Text => {
                    format!("varchar(128) character set utf8mb4 collate {collation}")
                }
                Cell::Number => "bigint".to_owned(),
            };
            format!("k{index} {kind} path '$[{index}]'")
        });
        let columns: Vec<_> = columns.collect();
        Keys {
            table: format!(
                "json_table(?, '$[*]' columns (n for ordinality, {})) as q",
                columns.join(", ")
            ),
            index: "cast(q.n as signed) - 1",
            cells: (0..cells.len())
                .map(|index| format!("q.k{index}"))
                .collect(),
        }
    }

    fn join(&self) -> &'static str {
        "straight_join"
    }

    fn fixes(&self, column: &str, cell: &str) -> String {
        // With an equation the index would be entered by it alone, and all of a partition, or of
        // an aggregate, be read for a few rows at its end. So it is a range that is looked up for
        // each key.
        format!("{column} >= {cell} and {column} <= {cell}")
    }

    fn through(&self, index: &str) -> String {
        format!(" force index ({index})")
    }
}

/// The statements that write and have keys as their parameter.
#[derive(Debug)]
pub(super) struct WriteTexts {
    /// Locks heads in the order of the keys: `[[partition], …]` → partition, head, and the time,
    /// read when the lock was had.
    pub(super) lock_heads: String,
    /// Raises heads: `[[partition, rows], …]`.
    pub(super) raise_heads: String,
    /// Checkpoints as they are: `[[subscription, partition], …]` → index, position, epoch,
    /// generation.
    pub(super) moved: String,
}

impl WriteTexts {
    fn new(flavour: Flavour) -> Self {
        let heads = log_partition::TABLE;
        let one = flavour.keys(&[Cell::Number]);
        let two = flavour.keys(&[Cell::Number, Cell::Number]);
        let named = flavour.keys(&[Cell::Text, Cell::Number]);
        Self {
            lock_heads: format!(
                "select p.partition_no, p.head, \
                 cast(floor(unix_timestamp(sysdate(3)) * 1000) as signed) \
                 from {keys} straight_join {heads} as p on p.partition_no = {partition} for update",
                keys = one.table,
                partition = one.cells[0],
            ),
            raise_heads: format!(
                "update {keys} straight_join {heads} as p on p.partition_no = {partition} \
                 set p.head = p.head + {rows}",
                keys = two.table,
                partition = two.cells[0],
                rows = two.cells[1],
            ),
            moved: format!(
                "select {index}, c.position, c.epoch, c.generation from {keys} \
                 straight_join {table} as c \
                 on c.subscription = {subscription} and c.partition_no = {partition}",
                index = named.index,
                keys = named.table,
                table = checkpoint::TABLE,
                subscription = named.cells[0],
                partition = named.cells[1],
            ),
        }
    }
}

/// The server's time, where no head is locked.
pub(super) const NOW: &str = "select cast(floor(unix_timestamp(sysdate(3)) * 1000) as signed)";

/// Inserts this many commits.
pub(super) fn insert_commits(rows: usize) -> String {
    insert(commit_log::TABLE, &commit_log::COLUMNS, rows)
}

/// Writes this many snapshots, each where it is newer (R84). Requests that aren't given stay.
///
/// Assignments are made one after the other, and each sees those before it: what decides comes
/// last.
pub(super) fn save_snapshots(rows: usize) -> String {
    let is_newer = "(values(version), values(state_revision)) > (version, state_revision)";
    let decides = ["state_revision", "version"];
    let key = &snapshot::PRIMARY_KEY_COLUMNS;
    let mut assignments: Vec<_> = snapshot::COLUMNS
        .iter()
        .filter(|column| !key.contains(column) && !decides.contains(column))
        .map(|column| match *column {
            "recent_requests" => {
                format!("{column} = if({is_newer}, coalesce(values({column}), {column}), {column})")
            }
            _ => format!("{column} = if({is_newer}, values({column}), {column})"),
        })
        .collect();
    assignments.extend([
        format!("state_revision = if({is_newer}, values(state_revision), state_revision)"),
        // Of a newer one it is as high or higher, of any other as low or lower.
        "version = greatest(version, values(version))".to_owned(),
    ]);
    format!(
        "{insert} on duplicate key update {assignments}",
        insert = insert(snapshot::TABLE, &snapshot::COLUMNS, rows),
        assignments = assignments.join(", "),
    )
}

/// Moves this many checkpoints forward (R81). In this order of assignments a checkpoint that
/// moves still may after each of them, and one that doesn't stays as it is.
pub(super) fn move_checkpoints(rows: usize) -> String {
    let moves = "values(epoch) >= epoch and (values(generation) > generation \
                 or (values(generation) = generation and values(position) >= position))";
    let assignments = ["updated_at", "position", "generation", "epoch"]
        .map(|column| format!("{column} = if({moves}, values({column}), {column})"));
    format!(
        "{insert} on duplicate key update {assignments}",
        insert = insert(checkpoint::TABLE, &checkpoint::COLUMNS, rows),
        assignments = assignments.join(", "),
    )
}
