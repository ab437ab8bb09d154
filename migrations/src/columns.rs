//! The column types that all databases share, and where one of them needs its own.
//!
//! Ids are compared byte for byte, times are milliseconds since the epoch in UTC, and JSON is
//! plain text: a JSON type may rewrite numbers (spec/05).

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

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
    if manager.get_database_backend() == DbBackend::MySql {
        // MySQL's default collations take 'a' for 'A'.
        column.extra("character set utf8mb4 collate utf8mb4_bin");
    }
    column
}

/// Text of any length.
pub(crate) fn text(manager: &SchemaManager<'_>, name: &'static str) -> ColumnDef {
    let mut column = column(name);
    if manager.get_database_backend() == DbBackend::MySql {
        // MySQL's plain text ends at 64 KiB.
        column
            .custom("longtext")
            .extra("character set utf8mb4 collate utf8mb4_bin");
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
