//! Every database against the kernel's suites: one call a port and database.

use std::sync::Arc;

use wow::storage::{Storage, StorageSettings};
use wow_kernel::conformance::{self, Stores};

use super::databases::Database;
use super::support::open;

/// Stores on a fresh database, which lives as long as they do. As a node has it: with as many
/// writers as its database takes.
async fn stores(database: Database) -> Stores {
    let settings = StorageSettings {
        writers: 2,
        ..database.settings()
    };
    let storage: Arc<Storage> = Arc::new(open(settings).await.unwrap());
    let database = Arc::new(database);
    let passing = Arc::clone(&database);
    Stores::of(storage)
        .with_time_async(move |duration| {
            let database = Arc::clone(&passing);
            async move {
                let millis = duration.as_millis();
                let sql =
                    format!("update member set lease_expires_at = lease_expires_at - {millis}");
                database.run(&sql).await;
            }
        })
        .guarded_by(database)
}

macro_rules! suites {
    ($($module:ident: $database:ident),* $(,)?) => {
        $(mod $module {
            use super::{Database, Stores, conformance, stores};

            async fn fresh() -> Stores {
                stores(Database::$database().await).await
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn is_a_commit_log() {
                conformance::commit_log::suite(fresh).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn is_a_request_lookup() {
                conformance::request_lookup::suite(fresh).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn is_a_history() {
                conformance::history::suite(fresh).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn is_a_snapshot_store() {
                conformance::snapshot_store::suite(fresh).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn is_a_checkpoint_store() {
                conformance::checkpoint_store::suite(fresh).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn is_a_lease_store() {
                conformance::lease_store::suite(fresh).await;
            }
        })*
    };
}

suites!(sqlite: sqlite, postgres: postgres, mysql: mysql);
