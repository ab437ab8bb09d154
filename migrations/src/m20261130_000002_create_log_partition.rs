//! Creates `log_partition`, the newest position of each partition (R80).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::log_partition as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = Table::create();
        table
            .table(names::TABLE)
            .if_not_exists()
            .col(columns::small("partition_no").primary_key())
            .col(columns::number("head"));
        manager.create_table(table).await
    }
}
