//! What holds for a database as a whole: written at the first start, checked at every later one.

use std::collections::HashMap;

use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, TransactionTrait};
use wow_migrations::names::{log_partition, meta};

use super::error::OpenError;

/// What a database says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The number of partitions of its log.
    pub partitions: u32,
    /// The context whose log it is.
    pub context: String,
}

/// Reads what a database says of itself; none before its first start.
///
/// # Errors
/// [`OpenError::Corrupt`] where a part of it is missing or no number.
pub(super) async fn read(database: &DatabaseConnection) -> Result<Option<Meta>, OpenError> {
    let mut all = Query::select();
    all.columns(meta::COLUMNS).from(meta::TABLE);
    let mut values: HashMap<String, String> = HashMap::new();
    for row in database.query_all(&all).await? {
        values.insert(row.try_get_by_index(0)?, row.try_get_by_index(1)?);
    }
    match (
        values.remove(meta::PARTITION_COUNT),
        values.remove(meta::CONTEXT),
    ) {
        (None, None) => Ok(None),
        (Some(count), Some(context)) => {
            let partitions = count.parse().map_err(|_| {
                OpenError::Corrupt(format!(
                    "its partition count is '{count}', which is no number"
                ))
            })?;
            Ok(Some(Meta {
                partitions,
                context,
            }))
        }
        _ => Err(OpenError::Corrupt(
            "it names only one of context and partition count".to_owned(),
        )),
    }
}

/// Writes it at the first start, and the head of each partition with it; refuses another value
/// at every later one.
///
/// # Errors
/// [`OpenError::PartitionCount`] and [`OpenError::Context`].
pub(super) async fn settle(database: &DatabaseConnection, wanted: &Meta) -> Result<(), OpenError> {
    match read(database).await? {
        None => Ok(write(database, wanted).await?),
        Some(stored) if stored.partitions != wanted.partitions => Err(OpenError::PartitionCount {
            stored: stored.partitions,
            configured: wanted.partitions,
        }),
        Some(stored) if stored.context != wanted.context => Err(OpenError::Context {
            stored: stored.context,
            configured: wanted.context.clone(),
        }),
        Some(_) => Ok(()),
    }
}

async fn write(database: &DatabaseConnection, wanted: &Meta) -> Result<(), DbErr> {
    let mut heads = Query::insert();
    heads
        .into_table(log_partition::TABLE)
        .columns(log_partition::COLUMNS);
    for partition in 0..wanted.partitions {
        heads.values_panic([Expr::value(partition), Expr::value(0_i64)]);
    }
    let mut values = Query::insert();
    values
        .into_table(meta::TABLE)
        .columns(meta::COLUMNS)
        .values_panic([
            meta::PARTITION_COUNT.into(),
            wanted.partitions.to_string().into(),
        ])
        .values_panic([meta::CONTEXT.into(), wanted.context.clone().into()]);
    let transaction = database.begin().await?;
    transaction.execute(&heads).await?;
    transaction.execute(&values).await?;
    transaction.commit().await
}
