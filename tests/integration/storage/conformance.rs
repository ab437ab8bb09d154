//! SQLite against the kernel's suites: one call a port.

use std::sync::Arc;

use wow::storage::Storage;
use wow_kernel::conformance::{self, Stores};

use super::support::{folder, open, settings};

/// A fresh file; it lives as long as the stores.
async fn fresh() -> Stores {
    let folder = folder();
    let storage: Arc<Storage> = Arc::new(open(settings(folder.path())).await.unwrap());
    Stores {
        log: Some(storage.clone()),
        history: Some(storage.clone()),
        requests: Some(storage.clone()),
        snapshots: Some(storage.clone()),
        checkpoints: Some(storage),
        ..Stores::default()
    }
    .guarded_by(folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_commit_log() {
    conformance::commit_log::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_request_lookup() {
    conformance::request_lookup::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_history() {
    conformance::history::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_snapshot_store() {
    conformance::snapshot_store::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_checkpoint_store() {
    conformance::checkpoint_store::suite(fresh).await;
}
