//! The recent requests of a snapshot against the log (R41).

use wow::storage::Finding;
use wow_kernel::ports::{CommitLog, SnapshotStore};
use wow_kernel::recent::{RecentRequests, RequestRecord, WRITTEN_EVERY};

use super::super::databases::Database;
use super::super::support::{append_versions, key, open, snapshot};
use super::{damage, verify};

/// The version of the snapshot: some beyond the last at which the requests are written.
const VERSION: u64 = WRITTEN_EVERY + 6;

/// An account with a snapshot, and in it the last eight requests that are written.
async fn a_log_with_requests(database: &Database) {
    let storage = open(database.settings()).await.unwrap();
    append_versions(&storage, "a", VERSION).await;
    let commits = storage
        .read_aggregate(&key("a"), 0, u64::MAX, 100)
        .await
        .unwrap();
    let mut recent = RecentRequests::new(8);
    for commit in &commits[..64] {
        recent.remember(RequestRecord::from(commit));
    }
    let newest = commits.last().unwrap();
    let mut snapshot = snapshot("a", VERSION, newest.position);
    snapshot.recent_requests = Some(recent.to_json().into());
    SnapshotStore::save(&storage, vec![snapshot]).await.unwrap();
    storage.close().await;
}

#[tokio::test]
async fn r41_requests_that_are_the_logs_are_clean() {
    let database = Database::sqlite().await;
    a_log_with_requests(&database).await;
    let report = verify(&database, None).await;
    assert_eq!((report.findings, report.warnings), (vec![], vec![]));
}

#[tokio::test]
async fn r41_requests_that_are_not_the_logs_are_found() {
    for (sql, reason) in [
        (
            "update snapshot set recent_requests = replace(recent_requests, 'a-60', 'b-60')",
            "that of version 60 is not the log's",
        ),
        (
            "update snapshot set recent_requests = replace(recent_requests, 'deposit', 'withdraw')",
            "that of version 57 is not the log's",
        ),
        (
            "update snapshot set recent_requests = replace(recent_requests, 'ann', 'bob')",
            "that of version 57 is not the log's",
        ),
        (
            "update commit_log set request_id = 'other' where version = 64",
            "that of version 64 is not the log's",
        ),
        (
            "update snapshot set recent_requests = replace(recent_requests, '\"v\":64', '\"v\":65')",
            "version 65 was not written yet",
        ),
        (
            "update snapshot set recent_requests = '[{'",
            "they can't be read: EOF while parsing an object at line 1 column 2",
        ),
    ] {
        let database = Database::sqlite().await;
        a_log_with_requests(&database).await;
        damage(&database, sql).await;
        let report = verify(&database, None).await;
        let found = Finding::SnapshotRequests {
            aggregate: key("a").to_string(),
            version: VERSION,
            reason: reason.to_owned(),
        };
        assert_eq!(report.findings, [found], "{sql}");
    }
}

/// A request that the set lacks is looked up in the log, so nothing is wrong; it is slower.
#[tokio::test]
async fn r41_requests_that_were_emptied_are_a_warning() {
    for emptied in ["'[]'", "null"] {
        let database = Database::sqlite().await;
        a_log_with_requests(&database).await;
        let sql = format!("update snapshot set recent_requests = {emptied}");
        damage(&database, &sql).await;
        let report = verify(&database, None).await;
        assert!(report.is_clean(), "{:?}", report.findings);
        let warning = Finding::SnapshotRequestsMissing {
            aggregate: key("a").to_string(),
            version: VERSION,
            written: 64,
        };
        assert_eq!(report.warnings, [warning], "{emptied}");
    }
}
