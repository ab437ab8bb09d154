//! A disk that is really full.
//!
//! It takes a small file system: `mount -t tmpfs -o size=4m tmpfs /mnt/small`, then
//! `WOW_TEST_SMALL_DISK=/mnt/small`. Without one there is nothing to fill, and the test says so;
//! the unit tests of the writer fill a file instead.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use wow_kernel::ports::{AppendError, CommitLog};

use super::support::{commit, key, open, settings};

/// Takes all the room there is.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [65536, 4096, 512, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r75_a_full_disk_is_unavailable_until_there_is_room_again() {
    let Some(disk) = std::env::var_os("WOW_TEST_SMALL_DISK") else {
        eprintln!("skipped: WOW_TEST_SMALL_DISK names no small file system");
        return;
    };
    let folder = tempfile::tempdir_in(disk).unwrap();
    let storage = open(settings(folder.path())).await.unwrap();
    let mut version = 0;
    let filler = folder.path().join("filler");
    for _ in 0..3 {
        version += 1;
        storage
            .append(commit("a", version, &version.to_string()))
            .await
            .unwrap();
        fill(&filler);
        // The WAL has room for some more; then it can't grow.
        let error = loop {
            let next = commit("a", version + 1, &(version + 1).to_string());
            match storage.append(next).await {
                Ok(_) => version += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, AppendError::Unavailable(_)), "{error:?}");
        std::fs::remove_file(&filler).unwrap();
    }
    let found = storage
        .read_aggregate(&key("a"), 0, u64::MAX, 10_000)
        .await
        .unwrap();
    assert_eq!(
        found.len() as u64,
        version,
        "what was acknowledged is there, and nothing else"
    );
    storage.close().await;
}
