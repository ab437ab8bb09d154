//! The suite of [`SnapshotStore`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cases::run_cases;
use super::samples::{assert_same_snapshot, key, key_of, snapshot};
use super::texts::{LOOK_ALIKES, longest};
use super::together::together;
use super::{APPENDERS, Stores};
use crate::commit::{AggregateFacts, StoredSnapshot};
use crate::id::{AggregateKey, OwnerId, SpaceId, Version};
use crate::ports::SnapshotStore;

/// Holds snapshots to R84: one an aggregate, the newest stays, and it comes back whole. Needs
/// `snapshots`.
///
/// # Panics
/// Where a case fails.
pub async fn suite(fresh: impl AsyncFn() -> Stores) {
    run_cases!(
        "snapshot_store",
        fresh,
        [
            an_unknown_snapshot_is_not_found,
            a_snapshot_comes_back_whole,
            a_snapshot_of_nobody_comes_back_whole,
            states_come_back_byte_for_byte,
            the_store_gives_the_time_itself,
            snapshots_of_aggregates_that_look_alike_are_different,
            r84_a_newer_version_replaces,
            r84_an_equal_version_of_a_newer_state_revision_replaces,
            r84_what_is_not_newer_never_replaces,
            r84_a_snapshot_without_requests_keeps_the_stored_ones,
            r84_a_batch_is_saved_whole,
            r84_a_batch_of_thousands_is_saved_whole,
            r84_a_stale_snapshot_in_a_batch_stops_none_of_the_others,
            r84_of_several_of_one_aggregate_in_a_batch_the_newest_stays,
            r84_saves_at_once_leave_the_newest,
            r63_versions_answer_in_the_order_asked,
        ]
    );
}

async fn save(snapshots: &dyn SnapshotStore, snapshot: &StoredSnapshot) {
    snapshots.save(vec![snapshot.clone()]).await.unwrap();
}

async fn assert_stored(snapshots: &dyn SnapshotStore, expected: &StoredSnapshot) {
    match snapshots.find(&expected.key).await.unwrap() {
        Some(found) => assert_same_snapshot(&found, expected),
        None => panic!("the snapshot of {} was not found", expected.key),
    }
    let versions = snapshots
        .versions(std::slice::from_ref(&expected.key))
        .await
        .unwrap();
    assert_eq!(versions, [expected.version], "versions of {}", expected.key);
}

/// A snapshot that says in its state which one it is.
fn marked(version: Version, state_revision: u32, mark: &str) -> StoredSnapshot {
    let state = format!(r#"{{"mark":"{mark}"}}"#);
    StoredSnapshot {
        state,
        state_revision,
        ..snapshot(&key("a"), version)
    }
}

async fn an_unknown_snapshot_is_not_found(stores: Stores) {
    let snapshots = stores.snapshots();
    assert!(
        snapshots.find(&key("unknown")).await.unwrap().is_none(),
        "it was never saved"
    );
    assert_eq!(snapshots.versions(&[key("unknown")]).await.unwrap(), [0]);
}

async fn a_snapshot_comes_back_whole(stores: Stores) {
    let snapshots = stores.snapshots();
    let mut tags: BTreeMap<String, Vec<String>> = LOOK_ALIKES
        .iter()
        .map(|text| ((*text).to_owned(), vec![(*text).to_owned(), String::new()]))
        .collect();
    tags.insert("none".into(), Vec::new());
    tags.insert("order".into(), vec!["b".into(), "a".into(), "b".into()]);
    for (number, text) in LOOK_ALIKES
        .iter()
        .copied()
        .chain([&*longest('😁')])
        .enumerate()
    {
        let snapshot = snapshot(&key(&format!("a-{number}")), 7);
        let facts = AggregateFacts {
            owner: OwnerId::trusted(text),
            space: SpaceId::trusted(text),
            deleted: number % 2 == 0,
            tags: tags.clone(),
            first_operator: Arc::from(text),
            operator: Arc::from(text),
            ..snapshot.facts
        };
        let recent_requests = Some(Arc::from(format!(r#"[{{"r":"{number}"}} , 1.10]"#)));
        let whole = StoredSnapshot {
            facts,
            recent_requests,
            state_revision: 9,
            ..snapshot
        };
        save(&*snapshots, &whole).await;
        assert_stored(&*snapshots, &whole).await;
    }
}

async fn a_snapshot_of_nobody_comes_back_whole(stores: Stores) {
    let snapshots = stores.snapshots();
    let facts = AggregateFacts::default();
    let empty = StoredSnapshot {
        facts,
        state: "null".into(),
        ..snapshot(&key("a"), 1)
    };
    save(&*snapshots, &empty).await;
    assert_stored(&*snapshots, &empty).await;
}

async fn states_come_back_byte_for_byte(stores: Stores) {
    let snapshots = stores.snapshots();
    let huge = format!(r#"{{"text":"{}"}}"#, "é😀x".repeat(1 << 17));
    let states = [
        r#"{"n":9223372036854775807,"m":18446744073709551615,"x":1e400,"d":1.10}"#,
        r#"{ "b" : 1,  "a" : 2, "a" : 3 }"#,
        r#"{"text":"\u0000 \ud800 é '\"; --"}"#,
        // What can't be read is the reader's affair (R50), so a state need not even be JSON.
        "{",
        "",
        &huge,
    ];
    for (version, state) in (1..).zip(states) {
        let snapshot = StoredSnapshot {
            state: state.into(),
            ..snapshot(&key("a"), version)
        };
        save(&*snapshots, &snapshot).await;
        assert_stored(&*snapshots, &snapshot).await;
    }
}

async fn the_store_gives_the_time_itself(stores: Stores) {
    let snapshots = stores.snapshots();
    let nonsense = StoredSnapshot {
        snapshot_time: -5,
        ..snapshot(&key("a"), 1)
    };
    save(&*snapshots, &nonsense).await;
    assert_stored(&*snapshots, &nonsense).await;
}

async fn snapshots_of_aggregates_that_look_alike_are_different(stores: Stores) {
    let snapshots = stores.snapshots();
    let longest = [longest('😀'), longest('😁')];
    let texts = || {
        LOOK_ALIKES
            .iter()
            .copied()
            .chain(longest.iter().map(String::as_str))
    };
    let keys: Vec<AggregateKey> = texts()
        .flat_map(|text| {
            [
                key(text),
                key_of(text, "account", "a"),
                key_of("(0)", text, "a"),
            ]
        })
        .collect();
    for (version, key) in (1..).zip(&keys) {
        save(&*snapshots, &snapshot(key, version)).await;
    }
    // "(0)" / "account" / "a" is there twice: once as an id, once as a type's or tenant's.
    for (version, key) in (1..).zip(&keys) {
        if keys.iter().rposition(|other| other == key) == Some(version as usize - 1) {
            assert_stored(&*snapshots, &snapshot(key, version)).await;
        }
    }
}

async fn r84_a_newer_version_replaces(stores: Stores) {
    let snapshots = stores.snapshots();
    for version in [1, 2, 5, 1000] {
        // A lower state revision with a higher version is newer all the same.
        let newer = marked(version, 2000 - version as u32, "newer");
        save(&*snapshots, &newer).await;
        assert_stored(&*snapshots, &newer).await;
    }
}

async fn r84_an_equal_version_of_a_newer_state_revision_replaces(stores: Stores) {
    let snapshots = stores.snapshots();
    save(&*snapshots, &marked(3, 1, "old")).await;
    let newer = marked(3, 2, "newer");
    save(&*snapshots, &newer).await;
    assert_stored(&*snapshots, &newer).await;
}

async fn r84_what_is_not_newer_never_replaces(stores: Stores) {
    let snapshots = stores.snapshots();
    let stored = StoredSnapshot {
        recent_requests: Some("[]".into()),
        ..marked(5, 3, "stored")
    };
    save(&*snapshots, &stored).await;
    for (version, revision) in [(4, 3), (4, 4), (1, 9), (5, 2), (5, 3)] {
        let mut late = marked(version, revision, "late");
        late.facts.deleted = true;
        late.recent_requests = Some("[1]".into());
        save(&*snapshots, &late).await;
        assert_stored(&*snapshots, &stored).await;
    }
}

async fn r84_a_snapshot_without_requests_keeps_the_stored_ones(stores: Stores) {
    let snapshots = stores.snapshots();
    let with = |snapshot: StoredSnapshot, requests: Option<&str>| StoredSnapshot {
        recent_requests: requests.map(Arc::from),
        ..snapshot
    };
    for (saved, expected) in [
        (with(marked(1, 1, "none yet"), None), None),
        (with(marked(2, 1, "first"), Some("[1]")), Some("[1]")),
        (with(marked(3, 1, "kept"), None), Some("[1]")),
        (with(marked(3, 2, "kept by revision"), None), Some("[1]")),
        (with(marked(4, 2, "second"), Some("[2]")), Some("[2]")),
        (with(marked(5, 2, "kept again"), None), Some("[2]")),
        (with(marked(6, 2, "emptied"), Some("[]")), Some("[]")),
    ] {
        save(&*snapshots, &saved).await;
        assert_stored(&*snapshots, &with(saved, expected)).await;
    }
}

async fn r84_a_batch_is_saved_whole(stores: Stores) {
    let snapshots = stores.snapshots();
    snapshots.save(Vec::new()).await.unwrap();
    let batch: Vec<_> = (1..=50)
        .map(|n| snapshot(&key(&format!("a-{n}")), n))
        .collect();
    snapshots.save(batch.clone()).await.unwrap();
    for expected in &batch {
        assert_stored(&*snapshots, expected).await;
    }
}

async fn r84_a_batch_of_thousands_is_saved_whole(stores: Stores) {
    let snapshots = stores.snapshots();
    let batch: Vec<_> = (1..=5000)
        .map(|n| snapshot(&key(&format!("a-{n}")), n))
        .collect();
    snapshots.save(batch.clone()).await.unwrap();
    let keys: Vec<_> = batch.iter().map(|snapshot| snapshot.key.clone()).collect();
    let versions = snapshots.versions(&keys).await.unwrap();
    assert_eq!(versions, (1..=5000).collect::<Vec<_>>());
    for expected in batch.iter().step_by(999) {
        assert_stored(&*snapshots, expected).await;
    }
}

async fn r84_a_stale_snapshot_in_a_batch_stops_none_of_the_others(stores: Stores) {
    let snapshots = stores.snapshots();
    let stored = snapshot(&key("b"), 9);
    save(&*snapshots, &stored).await;
    let batch = [
        snapshot(&key("a"), 1),
        snapshot(&key("b"), 8),
        snapshot(&key("c"), 1),
    ];
    snapshots.save(batch.to_vec()).await.unwrap();
    for expected in [&batch[0], &stored, &batch[2]] {
        assert_stored(&*snapshots, expected).await;
    }
}

async fn r84_of_several_of_one_aggregate_in_a_batch_the_newest_stays(stores: Stores) {
    let snapshots = stores.snapshots();
    let orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for (number, order) in orders.into_iter().enumerate() {
        let key = key(&format!("a-{number}"));
        let requests = Some(Arc::from("[1]"));
        let versions = [
            snapshot(&key, 1),
            // Saved oldest first, its requests would have stayed: so they do in any order.
            StoredSnapshot {
                recent_requests: requests.clone(),
                ..snapshot(&key, 2)
            },
            snapshot(&key, 3),
        ];
        let mut batch = vec![snapshot(&self::key("neighbour"), 1)];
        batch.extend(order.map(|index| versions[index].clone()));
        snapshots.save(batch).await.unwrap();
        let newest = StoredSnapshot {
            recent_requests: requests,
            ..versions[2].clone()
        };
        assert_stored(&*snapshots, &newest).await;
    }
}

async fn r84_saves_at_once_leave_the_newest(stores: Stores) {
    let snapshots = stores.snapshots();
    // Overlapping batches, each in another order: a store that locks rows must not deadlock.
    let keys: Vec<_> = (0..20).map(|number| key(&format!("a-{number}"))).collect();
    together((1..=APPENDERS).map(|version| {
        let snapshots = snapshots.clone();
        let mut keys = keys.clone();
        keys.rotate_left(version % 20);
        if version % 2 == 0 {
            keys.reverse();
        }
        let batch = keys
            .iter()
            .map(|key| snapshot(key, version as Version))
            .collect();
        async move { snapshots.save(batch).await.unwrap() }
    }))
    .await;
    for key in &keys {
        assert_stored(&*snapshots, &snapshot(key, APPENDERS as Version)).await;
    }
}

async fn r63_versions_answer_in_the_order_asked(stores: Stores) {
    let snapshots = stores.snapshots();
    for (id, version) in [("a", 3), ("b", 1), ("c", 2)] {
        save(&*snapshots, &snapshot(&key(id), version)).await;
    }
    let asked = ["c", "unknown", "a", "b", "c", "A"].map(key);
    assert_eq!(
        snapshots.versions(&asked).await.unwrap(),
        [2, 0, 3, 1, 2, 0]
    );
    assert!(
        snapshots.versions(&[]).await.unwrap().is_empty(),
        "versions of nothing"
    );
}
