//! Creates `snapshot`, the newest known state of each aggregate (R84).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::snapshot as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::id(manager, "tenant_id"))
            .col(columns::id(manager, "aggregate_type"))
            .col(columns::id(manager, "aggregate_id"))
            .col(columns::number("version"))
            .col(columns::small("partition_no"))
            .col(columns::number("position"))
            .col(columns::id(manager, "owner_id"))
            .col(columns::id(manager, "space_id"))
            .col(columns::flag("deleted"))
            .col(columns::text(manager, "tags"))
            .col(columns::text(manager, "state"))
            .col(columns::number("state_revision"))
            .col(columns::text(manager, "recent_requests").null())
            .col(columns::text(manager, "first_operator"))
            .col(columns::text(manager, "operator"))
            .col(columns::number("first_event_time"))
            .col(columns::number("event_time"))
            .col(columns::id(manager, "event_id").null())
            .col(columns::number("snapshot_time"))
            .primary_key(&mut columns::primary_key(
                names::PRIMARY_KEY,
                &names::PRIMARY_KEY_COLUMNS,
            ));
        manager.create_table(table).await
    }
}
