//! MySQL and MariaDB: one transaction a batch, of an update and a multi-row insert.

use std::collections::HashMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, Statement, TransactionTrait as _};

use super::Batch;

pub(super) struct MySql {
    connection: DatabaseConnection,
    /// By the number of rows.
    inserts: HashMap<usize, String>,
}

impl MySql {
    pub(super) fn new(connection: DatabaseConnection) -> Self {
        Self {
            connection,
            inserts: HashMap::new(),
        }
    }
}

#[async_trait]
impl super::Database for MySql {
    async fn write(&mut self, batch: &Batch) {
        let rows = batch.commits.len();
        let insert = self
            .inserts
            .entry(rows)
            .or_insert_with(|| super::insert(rows));
        let mut values = Vec::new();
        for (commit, position) in &batch.commits {
            super::push(&mut values, commit, *position);
        }
        let mut raise = "update log_partition set head = case partition_no".to_owned();
        for (partition, head) in &batch.heads {
            let _ = write!(raise, " when {partition} then {head}");
        }
        let partitions: Vec<_> = batch.heads.iter().map(|(at, _)| at.to_string()).collect();
        let _ = write!(
            raise,
            " end where partition_no in ({})",
            partitions.join(",")
        );
        let transaction = self.connection.begin().await.unwrap();
        transaction.execute_unprepared(&raise).await.unwrap();
        let insert = Statement::from_sql_and_values(DbBackend::MySql, insert.as_str(), values);
        transaction.execute_raw(insert).await.unwrap();
        transaction.commit().await.unwrap();
    }

    async fn close(self) {
        self.connection.close().await.unwrap();
    }
}
