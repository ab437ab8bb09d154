//! Creates `member`, the nodes of the service (R70).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::member as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::id(manager, "name").primary_key())
            .col(columns::id(manager, "incarnation"))
            .col(columns::text(manager, "address"))
            .col(columns::id(manager, "state"))
            .col(columns::small("protocol_min"))
            .col(columns::small("protocol_max"))
            .col(columns::number("lease_expires_at"))
            .col(columns::number("started_at"));
        manager.create_table(table).await
    }
}
