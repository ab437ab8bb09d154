//! Creates `commit_log`, the log, with its two unique keys (R44).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::commit_log as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // On SQLite the table keeps its rowid: rows are appended, and only the small index over
        // (partition_no, position) is written in 64 places. Without a rowid the rows themselves
        // would be, which measured 10 to 20 % slower.
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::small("partition_no"))
            .col(columns::number("position"))
            .col(columns::id(manager, "tenant_id"))
            .col(columns::id(manager, "aggregate_type"))
            .col(columns::id(manager, "aggregate_id"))
            .col(columns::number("version"))
            .col(columns::id(manager, "request_id"))
            .col(columns::id(manager, "command_id"))
            .col(columns::text(manager, "command_type"))
            .col(columns::text(manager, "principal"))
            .col(columns::id(manager, "owner_id"))
            .col(columns::id(manager, "space_id"))
            .col(columns::id(manager, "origin"))
            .col(columns::text(manager, "events"))
            .col(columns::text(manager, "result").null())
            .col(columns::text(manager, "headers"))
            .col(columns::number("committed_at"))
            .primary_key(&mut columns::primary_key(
                names::PRIMARY_KEY,
                &["partition_no", "position"],
            ));
        manager.create_table(table).await?;
        columns::create_unique(
            manager,
            names::TABLE,
            names::UNIQUE_VERSION,
            &names::UNIQUE_VERSION_COLUMNS,
        )
        .await?;
        columns::create_unique(
            manager,
            names::TABLE,
            names::UNIQUE_REQUEST,
            &names::UNIQUE_REQUEST_COLUMNS,
        )
        .await
    }
}
