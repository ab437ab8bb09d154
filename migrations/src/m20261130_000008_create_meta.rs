//! Creates `meta`, what holds for the database as a whole.

use sea_orm_migration::prelude::*;

use crate::columns;
use crate::names::meta as names;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut table = columns::table(manager, names::TABLE).await?;
        table
            .col(columns::id(manager, "key").primary_key())
            .col(columns::text(manager, "value"));
        manager.create_table(table).await
    }
}
