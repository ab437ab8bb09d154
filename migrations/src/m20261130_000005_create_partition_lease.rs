//! Creates `partition_lease`, who owns which partition (R72).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::partition_lease as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::small("partition_no").primary_key())
            .col(columns::id(manager, "owner_name").null())
            .col(columns::id(manager, "owner_incarnation").null())
            .col(columns::number("epoch"))
            .col(columns::id(manager, "state"));
        manager.create_table(table).await
    }
}
