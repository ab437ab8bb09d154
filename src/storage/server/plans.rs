//! That no statement scans a table that grows, asked of real servers.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

use std::time::Duration;

use sea_orm::sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use sea_orm::sqlx::{MySqlConnection, PgConnection, mysql, postgres};
use uuid::Uuid;
use wow_migrations::migrate;

use super::super::mysql::MySqlServer;
use super::super::postgres::PostgresServer;
use super::super::sql::Texts;
use super::Server;

const LIMIT: Duration = Duration::from_secs(60);

/// A server for tests, and the name of a database that isn't there yet.
fn server(variable: &str) -> (String, String, String) {
    let admin = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set; run ./test, which sets it"));
    let name = format!("wow_test_{}", Uuid::now_v7().simple());
    let (at, _) = admin.rsplit_once('/').unwrap();
    let url = format!("{at}/{name}");
    (admin, name, url)
}

/// Statements by name, with keys for each, and whether it reads a range behind them.
fn asked(texts: &Texts) -> Vec<(&'static str, String, &'static str, bool)> {
    let aggregates = r#"[["t","account","a7",0,100],["t","account","none",5,9]]"#;
    let ids = r#"[["t","account","a7"],["t","account","none"]]"#;
    let text = |text: &String| text.clone();
    vec![
        (
            "requests",
            text(&texts.requests),
            r#"[["t","account","r7"]]"#,
            false,
        ),
        (
            "aggregates",
            text(&texts.aggregate_commits),
            aggregates,
            true,
        ),
        (
            "aggregate requests",
            text(&texts.aggregate_requests),
            aggregates,
            true,
        ),
        (
            "partitions",
            text(&texts.partition_commits),
            "[[3,10,20],[4,0,9]]",
            true,
        ),
        ("newest versions", text(&texts.newest_versions), ids, false),
        ("snapshots", text(&texts.snapshots), ids, false),
        (
            "snapshot versions",
            text(&texts.snapshot_versions),
            ids,
            false,
        ),
        (
            "checkpoints",
            text(&texts.checkpoints),
            r#"[["snapshot"]]"#,
            false,
        ),
        (
            "taken",
            text(&texts.taken),
            r#"[["t","account","a7",1,"r7"]]"#,
            false,
        ),
    ]
}

#[tokio::test]
async fn on_postgres_no_statement_scans_a_table_that_grows() {
    let (admin, name, url) = server("WOW_TEST_POSTGRES_URL");
    let options: postgres::PgConnectOptions = admin.parse().unwrap();
    let mut admin: PgConnection = options.disable_statement_logging().connect().await.unwrap();
    let create = format!("create database {name}");
    admin.execute(AssertSqlSafe(create)).await.unwrap();
    let server = PostgresServer::new(&url, None, LIMIT, LIMIT).unwrap();
    let database = server.database(None).await.unwrap();
    migrate(&database).await.unwrap();
    database.close().await.unwrap();

    let mut connection = server.connect().await.unwrap();
    let texts = PostgresServer::texts(&connection);
    // Plans are made before there is anything in the tables, and hold when they are full.
    let mut scans = Vec::new();
    for (what, text, keys, _) in asked(texts) {
        let statement = what.replace(' ', "_");
        let prepare = format!("prepare {statement} (text) as {text}");
        connection.execute(AssertSqlSafe(prepare)).await.unwrap();
        let explain = format!("explain execute {statement} ('{keys}')");
        let plan = connection.fetch_all(AssertSqlSafe(explain)).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        // Each table is entered through an index, with what the keys say.
        let tables = ["commit_log", "snapshot", "checkpoint"];
        let scanned = steps.windows(2).any(|steps| {
            let of_table = tables
                .iter()
                .any(|table| steps[0].contains(&format!(" on {table} ")));
            of_table && !steps[1].contains("Index Cond")
        });
        // A filter would mean that more is read than was asked for.
        let filtered = steps
            .iter()
            .any(|step| step.trim_start().starts_with("Filter"));
        let is_read = steps.iter().any(|step| step.contains("Index Cond"));
        if scanned || filtered || !is_read {
            scans.push(format!("{what}: {steps:#?}"));
        }
    }
    connection.close().await.unwrap();
    let drop = format!("drop database {name} with (force)");
    admin.execute(AssertSqlSafe(drop)).await.unwrap();
    assert_eq!(scans, [] as [String; 0]);
}

#[tokio::test]
async fn on_mysql_no_statement_scans_a_table_that_grows() {
    let (admin, name, url) = server("WOW_TEST_MYSQL_URL");
    let options: mysql::MySqlConnectOptions = admin.parse().unwrap();
    let mut admin: MySqlConnection = options.disable_statement_logging().connect().await.unwrap();
    let create = format!("create database {name}");
    admin.execute(AssertSqlSafe(create)).await.unwrap();
    let server = MySqlServer::new(&url, None, LIMIT, LIMIT).unwrap();
    let database = server.database(None).await.unwrap();
    migrate(&database).await.unwrap();
    database.close().await.unwrap();

    let mut session = server.connect().await.unwrap();
    let mut rows = Vec::new();
    for number in 0..2000 {
        rows.push(format!(
            "({}, {}, 't', 'account', 'a{}', {}, 'r{number}', 'c', 'x', '', '', '', 'n', '[]', \
             null, '{{}}', 0)",
            number % 8,
            number / 8 + 1,
            number / 10,
            number % 10 + 1,
        ));
    }
    let fill = format!("insert into commit_log values {}", rows.join(", "));
    let snapshots = "insert into snapshot select tenant_id, aggregate_type, aggregate_id, version, \
                     partition_no, position, '', '', 0, '{}', '{}', 1, null, '', '', 0, 0, null, 0 \
                     from commit_log where version = 1";
    let checkpoints = "insert into checkpoint select aggregate_id, partition_no, 1, 1, 1, 0 \
                       from commit_log where version = 1";
    let analyze = "analyze table commit_log, snapshot, checkpoint";
    for text in [&*fill, snapshots, checkpoints, analyze] {
        let text = AssertSqlSafe(text.to_owned());
        session.connection.execute(text).await.unwrap();
    }
    let texts = MySqlServer::texts(&session);
    let mut scans = Vec::new();
    for (what, text, keys, is_range) in asked(texts) {
        let explain = format!("explain {}", text.replacen('?', &format!("'{keys}'"), 1));
        let plan = session.connection.fetch_all(AssertSqlSafe(explain)).await;
        for step in plan.unwrap() {
            let (table, kind, extra): (Option<String>, Option<String>, Option<String>) =
                (step.get("table"), step.get("type"), step.get("Extra"));
            let ranged = extra.is_some_and(|extra| extra.contains("Range checked"));
            let of_table = table.as_deref() == Some("c");
            let scanned = kind.is_some_and(|kind| kind == "ALL" || kind == "index") && !ranged;
            // A range is looked up for each key, and not searched for in all of a partition.
            if of_table && (scanned || is_range && !ranged) {
                scans.push(what);
            }
        }
    }
    MySqlServer::close(session).await;
    let drop = format!("drop database {name}");
    admin.execute(AssertSqlSafe(drop)).await.unwrap();
    assert_eq!(scans, [] as [&str; 0]);
}
