//! Creates `parked_entry`, what subscriptions couldn't handle (R82).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::parked_entry as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::id(manager, "subscription"))
            .col(columns::small("partition_no"))
            .col(columns::number("position"))
            .col(columns::id(manager, "tenant_id"))
            .col(columns::id(manager, "aggregate_type"))
            .col(columns::id(manager, "aggregate_id"))
            .col(columns::text(manager, "error"))
            .col(columns::number("attempts"))
            .col(columns::number("first_failed_at"))
            .col(columns::number("next_retry_at"))
            .col(columns::id(manager, "state"))
            .primary_key(&mut columns::primary_key(
                names::PRIMARY_KEY,
                &["subscription", "partition_no", "position"],
            ));
        manager.create_table(table).await
    }
}
