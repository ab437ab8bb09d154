//! The database schema of a Wow node: its migrations, and every name in it.
//!
//! [`migrate`] brings a database to the newest schema and [`schema_state`] only looks. Migrations
//! go forward only: the log is append-only, and a step back would have to delete from it. Each
//! is idempotent, so that a run that was cut short is simply run again; none is ever edited once
//! it has landed. Guarding against two runs at once is the caller's part, for each database
//! has its own lock for that.

mod columns;
mod m20261130_000001_create_commit_log;
mod m20261130_000002_create_log_partition;
mod m20261130_000003_create_snapshot;
mod m20261130_000004_create_member;
mod m20261130_000005_create_partition_lease;
mod m20261130_000006_create_checkpoint;
mod m20261130_000007_create_parked_entry;
mod m20261130_000008_create_meta;
pub mod names;

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::DatabaseConnection;

/// The table in which the applied migrations are recorded.
const MIGRATION_TABLE: &str = "seaql_migrations";

/// Why a schema can't be used or brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A newer binary has migrated the database; going on would misread its rows.
    #[error(
        "the database's schema is newer than this binary: it knows nothing of {}; \
         use the newer binary, for schemas never go back",
        .unknown.join(", ")
    )]
    Newer {
        /// The migrations this binary doesn't know.
        unknown: Vec<String>,
    },
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
}

/// How a database's schema compares with what this binary knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// Every migration is applied.
    Latest,
    /// These aren't yet, in order; all of them where the database is empty.
    Pending(Vec<String>),
}

/// The migrations, in order.
#[derive(Debug)]
struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261130_000001_create_commit_log::Migration),
            Box::new(m20261130_000002_create_log_partition::Migration),
            Box::new(m20261130_000003_create_snapshot::Migration),
            Box::new(m20261130_000004_create_member::Migration),
            Box::new(m20261130_000005_create_partition_lease::Migration),
            Box::new(m20261130_000006_create_checkpoint::Migration),
            Box::new(m20261130_000007_create_parked_entry::Migration),
            Box::new(m20261130_000008_create_meta::Migration),
        ]
    }
}

/// The number of migrations this binary knows, as `meta` holds it for people.
pub fn schema_version() -> usize {
    Migrator::migrations().len()
}

/// Compares a database's schema with what this binary knows, and changes nothing.
///
/// # Errors
/// [`SchemaError::Newer`] where it is ahead of this binary.
pub async fn schema_state(database: &DatabaseConnection) -> Result<SchemaState, SchemaError> {
    let applied = applied(database).await?;
    let known: Vec<String> = Migrator::migrations()
        .iter()
        .map(|migration| migration.name().to_owned())
        .collect();
    let unknown: Vec<String> = applied
        .iter()
        .filter(|name| !known.contains(name))
        .cloned()
        .collect();
    if !unknown.is_empty() {
        return Err(SchemaError::Newer { unknown });
    }
    let pending: Vec<String> = known
        .into_iter()
        .filter(|name| !applied.contains(name))
        .collect();
    Ok(if pending.is_empty() {
        SchemaState::Latest
    } else {
        SchemaState::Pending(pending)
    })
}

/// The unique keys of the log that a database lacks, by name: nothing of ours drops one.
///
/// # Errors
/// What the database says.
pub async fn missing_keys(database: &DatabaseConnection) -> Result<Vec<&'static str>, DbErr> {
    use names::commit_log::{TABLE, UNIQUE_REQUEST, UNIQUE_VERSION};

    let schema = SchemaManager::new(database);
    let mut missing = Vec::new();
    for key in [UNIQUE_VERSION, UNIQUE_REQUEST] {
        if !schema.has_index(TABLE, key).await? {
            missing.push(key);
        }
    }
    Ok(missing)
}

/// Brings a database to the newest schema; a database that has it is left as it is.
///
/// # Errors
/// [`SchemaError::Newer`] where it is ahead of this binary, before anything is changed.
pub async fn migrate(database: &DatabaseConnection) -> Result<(), SchemaError> {
    if schema_state(database).await? == SchemaState::Latest {
        return Ok(());
    }
    Migrator::up(database, None).await?;
    let (key, value) = (names::meta::COLUMNS[0], names::meta::COLUMNS[1]);
    let mut version = Query::insert();
    version
        .into_table(names::meta::TABLE)
        .columns([key, value])
        .values_panic([
            names::meta::SCHEMA_VERSION.into(),
            schema_version().to_string().into(),
        ])
        .on_conflict(OnConflict::column(key).update_column(value).to_owned());
    database.execute(&version).await?;
    Ok(())
}

/// The names of the applied migrations; none where nothing was ever migrated.
async fn applied(database: &DatabaseConnection) -> Result<Vec<String>, DbErr> {
    if !SchemaManager::new(database)
        .has_table(MIGRATION_TABLE)
        .await?
    {
        return Ok(Vec::new());
    }
    let mut names = Query::select();
    names.column("version").from(MIGRATION_TABLE);
    let rows = database.query_all(&names).await?;
    rows.into_iter()
        .map(|row| row.try_get_by_index(0))
        .collect()
}
