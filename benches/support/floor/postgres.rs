//! PostgreSQL: heads and rows in one autocommit statement, so one round trip a batch.

use std::str::FromStr;

use async_trait::async_trait;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::{ConnectOptions as _, Connection as _, PgConnection, query};
use wow_migrations::names::commit_log;

use super::Batch;

pub(super) struct Postgres {
    connection: PgConnection,
    statement: String,
}

impl Postgres {
    pub(super) async fn connect(url: &str) -> Self {
        let options = PgConnectOptions::from_str(url).unwrap();
        let statement = format!(
            "with raised as (update log_partition set head = q.head \
             from unnest($1::int[], $2::bigint[]) as q (partition_no, head) \
             where log_partition.partition_no = q.partition_no) \
             insert into commit_log ({}) select * from unnest($3::int[], $4::bigint[], \
             $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[], \
             $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], \
             $17::text[], $18::text[], $19::bigint[])",
            commit_log::COLUMNS.join(", ")
        );
        Self {
            connection: options.connect().await.unwrap(),
            statement,
        }
    }
}

/// A column of a batch.
macro_rules! column {
    ($batch:expr, $commit:ident => $value:expr) => {
        $batch
            .commits
            .iter()
            .map(|($commit, _)| $value)
            .collect::<Vec<_>>()
    };
}

#[async_trait]
impl super::Database for Postgres {
    async fn write(&mut self, batch: &Batch) {
        let (partitions, heads): (Vec<i32>, Vec<i64>) = batch
            .heads
            .iter()
            .map(|(partition, head)| (*partition as i32, *head as i64))
            .unzip();
        let positions: Vec<i64> = batch.commits.iter().map(|(_, at)| *at as i64).collect();
        query(sea_orm::sqlx::AssertSqlSafe(self.statement.as_str()))
            .bind(partitions)
            .bind(heads)
            .bind(column!(batch, commit => commit.partition.0 as i32))
            .bind(positions)
            .bind(column!(batch, commit => commit.key.tenant.to_string()))
            .bind(column!(batch, commit => commit.key.aggregate_type.to_string()))
            .bind(column!(batch, commit => commit.key.id.to_string()))
            .bind(column!(batch, commit => commit.version as i64))
            .bind(column!(batch, commit => commit.request_id.to_string()))
            .bind(column!(batch, commit => commit.command_id.to_string()))
            .bind(column!(batch, commit => commit.command_type.to_string()))
            .bind(column!(batch, commit => commit.principal.to_string()))
            .bind(column!(batch, commit => commit.owner.as_str().to_owned()))
            .bind(column!(batch, commit => commit.space.as_str().to_owned()))
            .bind(column!(batch, commit => commit.origin.to_string()))
            .bind(column!(batch, commit => serde_json::to_string(&commit.events).unwrap()))
            .bind(column!(batch, _commit => None::<String>))
            .bind(column!(batch, commit => serde_json::to_string(&commit.headers).unwrap()))
            .bind(column!(batch, _commit => 0_i64))
            .execute(&mut self.connection)
            .await
            .unwrap();
    }

    async fn close(self) {
        self.connection.close().await.unwrap();
    }
}
