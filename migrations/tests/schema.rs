//! What a migration run promises, held against a real SQLite database.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{ConnectOptions, Database, DatabaseConnection, Statement};
use wow_migrations::{SchemaError, SchemaState, migrate, names, schema_state, schema_version};

async fn empty() -> DatabaseConnection {
    let mut options = ConnectOptions::new("sqlite::memory:");
    options.max_connections(1).sqlx_logging(false);
    Database::connect(options).await.unwrap()
}

async fn texts(database: &DatabaseConnection, sql: &str) -> Vec<String> {
    let statement = Statement::from_string(database.get_database_backend(), sql);
    let rows = database.query_all_raw(statement).await.unwrap();
    rows.into_iter()
        .map(|row| row.try_get_by_index(0).unwrap())
        .collect()
}

async fn run(database: &DatabaseConnection, sql: &str) -> Result<(), DbErr> {
    database.execute_unprepared(sql).await.map(|_| ())
}

/// Every object of the schema, with its text.
async fn schema(database: &DatabaseConnection) -> Vec<String> {
    let sql =
        "select type || ' ' || name || ' ' || coalesce(sql, '') from sqlite_master order by 1";
    texts(database, sql).await
}

#[tokio::test]
async fn an_empty_database_reaches_the_newest_schema_and_a_second_run_changes_nothing() {
    let database = empty().await;
    let SchemaState::Pending(pending) = schema_state(&database).await.unwrap() else {
        panic!("an empty database has everything before it");
    };
    assert_eq!(pending.len(), schema_version());

    migrate(&database).await.unwrap();
    assert_eq!(schema_state(&database).await.unwrap(), SchemaState::Latest);
    let first = schema(&database).await;

    migrate(&database).await.unwrap();
    assert_eq!(schema(&database).await, first);
    let stored = texts(
        &database,
        "select value from meta where key = 'schema_version'",
    )
    .await;
    assert_eq!(stored, [schema_version().to_string()]);
}

#[tokio::test]
async fn looking_at_a_schema_creates_nothing() {
    let database = empty().await;
    schema_state(&database).await.unwrap();
    assert_eq!(schema(&database).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_run_that_was_cut_short_is_finished_by_the_next() {
    let database = empty().await;
    migrate(&database).await.unwrap();
    let whole = schema(&database).await;
    // As if the process had died after creating the table, before anything else of the step.
    run(&database, "drop index uk_commit_log_request")
        .await
        .unwrap();
    run(
        &database,
        "delete from seaql_migrations where version like '%commit_log'",
    )
    .await
    .unwrap();

    migrate(&database).await.unwrap();
    assert_eq!(schema(&database).await, whole);
}

#[tokio::test]
async fn a_schema_newer_than_the_binary_is_refused_and_left_alone() {
    let database = empty().await;
    migrate(&database).await.unwrap();
    run(
        &database,
        "insert into seaql_migrations values ('m29991231_000001_create_future', 0)",
    )
    .await
    .unwrap();
    let before = schema(&database).await;

    for result in [
        migrate(&database).await,
        schema_state(&database).await.map(|_| ()),
    ] {
        let Err(SchemaError::Newer { unknown }) = result else {
            panic!("a newer schema has to be refused");
        };
        assert_eq!(unknown, ["m29991231_000001_create_future"]);
    }
    assert_eq!(schema(&database).await, before);
}

#[tokio::test]
async fn the_tables_have_the_columns_that_names_lists() {
    let database = empty().await;
    migrate(&database).await.unwrap();
    let tables: [(&str, &[&str]); 8] = [
        (names::commit_log::TABLE, &names::commit_log::COLUMNS),
        (names::log_partition::TABLE, &names::log_partition::COLUMNS),
        (names::snapshot::TABLE, &names::snapshot::COLUMNS),
        (names::member::TABLE, &names::member::COLUMNS),
        (
            names::partition_lease::TABLE,
            &names::partition_lease::COLUMNS,
        ),
        (names::checkpoint::TABLE, &names::checkpoint::COLUMNS),
        (names::parked_entry::TABLE, &names::parked_entry::COLUMNS),
        (names::meta::TABLE, &names::meta::COLUMNS),
    ];
    for (table, columns) in tables {
        let sql = format!("select name from pragma_table_info('{table}') order by cid");
        assert_eq!(texts(&database, &sql).await, columns, "{table}");
    }
}

#[tokio::test]
async fn r44_a_version_and_a_request_id_are_taken_once_for_each_tenant_and_type() {
    let database = empty().await;
    migrate(&database).await.unwrap();
    let commit = |position: u32, tenant: &str, id: &str, version: u32, request: &str| {
        format!(
            "insert into commit_log values (0, {position}, '{tenant}', 'account', '{id}', \
             {version}, '{request}', 'c', 'open', '', '', '', 'node', '[]', null, '{{}}', 0)"
        )
    };
    run(&database, &commit(1, "a", "x", 1, "r1")).await.unwrap();
    run(&database, &commit(2, "b", "x", 1, "r1")).await.unwrap();
    run(&database, &commit(3, "a", "X", 1, "R1")).await.unwrap();
    for taken in [
        commit(4, "a", "x", 1, "r2"),
        commit(4, "a", "y", 1, "r1"),
        commit(1, "a", "y", 1, "r2"),
    ] {
        assert!(run(&database, &taken).await.is_err(), "{taken}");
    }
}
