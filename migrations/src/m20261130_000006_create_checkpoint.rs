//! Creates `checkpoint`, how far each subscription has come in each partition (R81).

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::checkpoint as names;

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
            .col(columns::number("epoch"))
            .col(columns::number("generation"))
            .col(columns::number("updated_at"))
            .primary_key(&mut columns::primary_key(
                names::PRIMARY_KEY,
                &["subscription", "partition_no"],
            ));
        manager.create_table(table).await
    }
}
