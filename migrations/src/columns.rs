//! The column types that all databases share, and where one of them needs its own.
//!
//! Ids are compared byte for byte, times are milliseconds since the epoch in UTC, and JSON is
//! plain text: a JSON type may rewrite numbers (spec/05).

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{DbBackend, Statement};

/// A table that is created where it isn't there yet, without its columns.
///
/// On MySQL its texts are compared byte for byte: the default collations take 'a' for 'A', and
/// most of those that don't take 'a' for 'a '. The one that does neither has another name on
/// MariaDB.
pub(crate) async fn table(
    manager: &SchemaManager<'_>,
    name: &'static str,
) -> Result<TableCreateStatement, DbErr> {
    let mut table = Table::create();
    table.table(name).if_not_exists();
    if manager.get_database_backend() == DbBackend::MySql {
        let version = Statement::from_string(DbBackend::MySql, "select version()");
        let row = manager.get_connection().query_one_raw(version).await?;
        let version: Option<String> = row.map(|row| row.try_get_by_index(0)).transpose()?;
        let is_mariadb = version.is_some_and(|version| version.contains("MariaDB"));
        let collation = if is_mariadb {
            "utf8mb4_nopad_bin"
        } else {
            "utf8mb4_0900_bin"
        };
        table
            .engine("InnoDB")
            .character_set("utf8mb4")
            .collate(collation);
    }
    Ok(table)
}

/// A column that is never null.
fn column(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.not_null();
    column
}

/// An id: up to 128 characters, part of keys.
pub(crate) fn id(manager: &SchemaManager<'_>, name: &'static str) -> ColumnDef {
    let mut column = column(name);
    column.string_len(128);
    if manager.get_database_backend() == DbBackend::Postgres {
        // The order of bytes is also the cheapest to compare.
        column.extra("collate \"C\"");
    }
    column
}

/// Text of any length.
pub(crate) fn text(manager: &SchemaManager<'_>, name: &'static str) -> ColumnDef {
    let mut column = column(name);
    if manager.get_database_backend() == DbBackend::MySql {
        // MySQL's plain text ends at 64 KiB.
        column.custom("longtext");
    } else {
        column.text();
    }
    column
}

/// A count, a position, or a time in epoch milliseconds.
pub(crate) fn number(name: &'static str) -> ColumnDef {
    let mut column = column(name);
    column.big_integer();
    column
}

/// The number of a partition, or another small one.
pub(crate) fn small(name: &'static str) -> ColumnDef {
    let mut column = column(name);
    column.integer();
    column
}

/// Yes or no.
pub(crate) fn flag(name: &'static str) -> ColumnDef {
    let mut column = column(name);
    column.boolean();
    column
}

/// A named primary key over several columns.
pub(crate) fn primary_key(name: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut key = Index::create();
    key.name(name);
    for column in columns {
        key.col(*column);
    }
    key
}

/// Creates a named unique index where it isn't there yet.
pub(crate) async fn create_unique(
    manager: &SchemaManager<'_>,
    table: &'static str,
    name: &'static str,
    columns: &[&'static str],
) -> Result<(), DbErr> {
    // MySQL has no "if not exists" for an index, so all databases are asked.
    if manager.has_index(table, name).await? {
        return Ok(());
    }
    let mut index = Index::create();
    index.unique().name(name).table(table);
    for column in columns {
        index.col(*column);
    }
    manager.create_index(index).await
}
