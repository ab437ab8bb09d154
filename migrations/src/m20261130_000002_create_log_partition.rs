//! Creates `log_partition`, the newest position of each partition (R80).

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DbBackend;

use crate::columns;
use crate::names::log_partition as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::small("partition_no").primary_key())
            .col(columns::number("head"));
        if manager.get_database_backend() == DbBackend::Postgres {
            // Every batch updates these few rows: with room in their pages they stay where they
            // are, and the index isn't written.
            table.extra("with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0)");
        }
        manager.create_table(table).await
    }
}
