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
    Stores {
        log: Some(storage.clone()),
        history: Some(storage.clone()),
        requests: Some(storage.clone()),
        snapshots: Some(storage.clone()),
        checkpoints: Some(storage),
        ..Stores::default()
    }
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
        })*
    };
}

suites!(sqlite: sqlite, postgres: postgres, mysql: mysql);
