//! The suite of [`History`](crate::ports::History).

use super::cases::run_cases;
use super::samples::{
    append, append_versions, assert_all_same, assert_same, assert_same_snapshot, commit, key,
    key_of, snapshot,
};
use super::texts::LOOK_ALIKES;
use super::together::together;
use super::{APPENDERS, Stores};
use crate::commit::Commit;
use crate::id::{AggregateKey, RequestId, Version};
use crate::ports::ColdHistory;
use crate::recent::{RequestRecord, WRITTEN_EVERY, unwritten};

/// Holds the two reads of a lane to the log and the snapshots: a cold start (R41, R50), and a
/// second look (R58). Needs `log`, `snapshots` and `history`.
///
/// # Panics
/// Where a case fails.
pub async fn suite(fresh: impl AsyncFn() -> Stores) {
    run_cases!(
        "history",
        fresh,
        [
            r50_of_an_unknown_aggregate_nothing_is_loaded,
            r50_without_a_snapshot_the_log_is_loaded,
            r50_with_a_snapshot_what_follows_it_is_loaded,
            r50_a_snapshot_of_the_newest_version_leaves_no_tail,
            r50_a_long_tail_is_continued_by_reading_the_log,
            r50_a_commit_is_loaded_as_soon_as_it_is_appended,
            r50_aggregates_that_look_alike_have_their_own_histories,
            r50_many_loads_at_once_each_get_their_own_history,
            r41_the_requests_that_a_snapshot_does_not_hold_are_loaded,
            r41_loaded_requests_come_back_whole,
            r58_a_probe_of_an_unknown_aggregate_finds_nothing,
            r58_a_probe_sees_the_newest_version_as_soon_as_it_is_appended,
            r58_a_probe_finds_the_request_it_is_asked_for,
            r58_a_probe_finds_a_request_of_another_aggregate_of_its_type,
            r58_many_probes_at_once_each_get_their_own_answer,
        ]
    );
}

/// Loads a history and checks it against all that was appended and the snapshot's version.
async fn load(stores: &Stores, key: &AggregateKey, all: &[Commit]) -> ColdHistory {
    let loaded = stores.history().load(key).await.unwrap();
    let snapshot = loaded
        .snapshot
        .as_ref()
        .map_or(0, |snapshot| snapshot.version);
    assert_requests(&loaded, snapshot, all);

    let after: Vec<_> = all
        .iter()
        .filter(|commit| commit.version > snapshot)
        .cloned()
        .collect();
    // How long a page is, is the store's own affair; that there is something on it is not.
    let page = loaded.tail.len();
    assert!(
        page > 0 || after.is_empty(),
        "{} commits follow, none was loaded",
        after.len()
    );
    assert!(
        page <= after.len(),
        "{page} commits loaded, {} follow",
        after.len()
    );
    assert_all_same(&loaded.tail, &after[..page]);
    assert_eq!(
        loaded.has_more,
        page < after.len(),
        "has_more: {page} of {}",
        after.len()
    );
    loaded
}

#[track_caller]
fn assert_requests(loaded: &ColdHistory, snapshot: Version, all: &[Commit]) {
    let expected = all
        .iter()
        .filter(|commit| unwritten(snapshot).contains(&commit.version));
    let expected: Vec<_> = expected.map(RequestRecord::from).collect();
    let ids = |records: &[RequestRecord]| -> Vec<RequestId> {
        records
            .iter()
            .map(|record| record.request_id.clone())
            .collect()
    };
    assert_eq!(
        ids(&loaded.requests),
        ids(&expected),
        "requests up to version {snapshot}"
    );
    for (found, expected) in loaded.requests.iter().zip(&expected) {
        let name = &expected.request_id;
        assert_eq!(
            found.command_id, expected.command_id,
            "command id of {name}"
        );
        assert_eq!(found.version, expected.version, "version of {name}");
        assert_eq!(
            found.command_type, expected.command_type,
            "command type of {name}"
        );
        assert_eq!(found.principal, expected.principal, "principal of {name}");
        assert_eq!(found.owner, expected.owner, "owner of {name}");
        let result =
            |record: &RequestRecord| record.result.as_ref().map(|result| result.get().to_owned());
        assert_eq!(result(found), result(expected), "result of {name}");
    }
}

async fn save_snapshot(stores: &Stores, key: &AggregateKey, version: Version) {
    stores
        .snapshots()
        .save(vec![snapshot(key, version)])
        .await
        .unwrap();
}

async fn r50_of_an_unknown_aggregate_nothing_is_loaded(stores: Stores) {
    append_versions(&*stores.log(), &key("a"), 2).await;
    let loaded = load(&stores, &key("unknown"), &[]).await;
    assert!(
        loaded.snapshot.is_none(),
        "a snapshot of an unknown aggregate"
    );
}

async fn r50_without_a_snapshot_the_log_is_loaded(stores: Stores) {
    let all = append_versions(&*stores.log(), &key("a"), 5).await;
    let loaded = load(&stores, &key("a"), &all).await;
    assert!(loaded.snapshot.is_none(), "a snapshot that nobody saved");
}

async fn r50_with_a_snapshot_what_follows_it_is_loaded(stores: Stores) {
    let all = append_versions(&*stores.log(), &key("a"), 9).await;
    for version in [1, 4, 8] {
        save_snapshot(&stores, &key("a"), version).await;
        let loaded = load(&stores, &key("a"), &all).await;
        let found = loaded.snapshot.expect("the snapshot was saved");
        assert_same_snapshot(&found, &snapshot(&key("a"), version));
    }
}

async fn r50_a_snapshot_of_the_newest_version_leaves_no_tail(stores: Stores) {
    let all = append_versions(&*stores.log(), &key("a"), 3).await;
    save_snapshot(&stores, &key("a"), 3).await;
    let loaded = load(&stores, &key("a"), &all).await;
    assert!(loaded.snapshot.is_some(), "the snapshot was saved");
    assert!(loaded.tail.is_empty(), "nothing follows the snapshot");
}

async fn r50_a_long_tail_is_continued_by_reading_the_log(stores: Stores) {
    let log = stores.log();
    let all = append_versions(&*log, &key("a"), 1200).await;
    save_snapshot(&stores, &key("a"), 10).await;
    let loaded = load(&stores, &key("a"), &all).await;
    let (mut found, mut more) = (loaded.tail, loaded.has_more);
    while more {
        let last = found.last().expect("a page holds something").version;
        let page = log
            .read_aggregate(&key("a"), last, 1200, 100)
            .await
            .unwrap();
        assert!(!page.is_empty(), "more was said to follow version {last}");
        found.extend(page);
        more = found.len() < 1190;
    }
    assert_all_same(&found, &all[10..]);
}

async fn r50_a_commit_is_loaded_as_soon_as_it_is_appended(stores: Stores) {
    let log = stores.log();
    for version in 1..=20 {
        append(
            &*log,
            &commit(&key("a"), version, &format!("request-{version}")),
        )
        .await;
        let loaded = stores.history().load(&key("a")).await.unwrap();
        assert_eq!(
            loaded.tail.last().map(|commit| commit.version),
            Some(version)
        );
    }
}

async fn r50_aggregates_that_look_alike_have_their_own_histories(stores: Stores) {
    let keys: Vec<_> = LOOK_ALIKES
        .iter()
        .map(|text| key(text))
        .chain([key_of("acme", "account", "id"), key_of("(0)", "cart", "id")])
        .collect();
    let mut all = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let commits = append_numbered(&stores, number, key, 2).await;
        save_snapshot(&stores, key, 1).await;
        all.push(commits);
    }
    for (key, all) in keys.iter().zip(&all) {
        let loaded = load(&stores, key, all).await;
        assert_eq!(
            loaded.snapshot.map(|snapshot| snapshot.key).as_ref(),
            Some(key)
        );
    }
}

/// Appends versions 1 to `newest` with requests named by a number, since ids that belong to other
/// tenants or types would else name the same requests.
async fn append_numbered(
    stores: &Stores,
    number: usize,
    key: &AggregateKey,
    newest: Version,
) -> Vec<Commit> {
    let log = stores.log();
    let mut commits = Vec::new();
    for version in 1..=newest {
        let commit = commit(key, version, &format!("request-{number}-{version}"));
        let receipt = append(&*log, &commit).await;
        commits.push(super::samples::stored(commit, receipt));
    }
    commits
}

async fn r50_many_loads_at_once_each_get_their_own_history(stores: Stores) {
    let mut expected = Vec::new();
    for number in 0..APPENDERS {
        let key = key(&format!("a-{number}"));
        // None to four commits, with and without a snapshot of the second.
        let newest = number as Version % 5;
        let all = append_numbered(&stores, number, &key, newest).await;
        if newest >= 2 && number % 2 == 0 {
            save_snapshot(&stores, &key, 2).await;
        }
        expected.push((key, all));
    }
    let asked = expected.iter().cycle().take(2 * expected.len()).cloned();
    together(asked.map(|(key, all)| {
        let stores = stores.clone();
        async move {
            load(&stores, &key, &all).await;
        }
    }))
    .await;
}

async fn r41_the_requests_that_a_snapshot_does_not_hold_are_loaded(stores: Stores) {
    let all = append_versions(&*stores.log(), &key("a"), 3 * WRITTEN_EVERY).await;
    let every = WRITTEN_EVERY;
    for version in [
        1,
        2,
        every - 1,
        every,
        every + 1,
        2 * every - 1,
        2 * every,
        3 * every - 1,
    ] {
        save_snapshot(&stores, &key("a"), version).await;
        let loaded = load(&stores, &key("a"), &all).await;
        // The snapshot's own is always there: it tells whether the log has it (R50).
        assert_eq!(
            loaded.requests.len() as Version,
            (version % every).max(1),
            "at version {version}"
        );
    }
}

async fn r41_loaded_requests_come_back_whole(stores: Stores) {
    let log = stores.log();
    let mut all = Vec::new();
    for (version, text) in (1..).zip(LOOK_ALIKES.iter().take(40)) {
        let result = super::samples::raw(&format!(r#"{{ "number" : {version}.10 }}"#));
        let commit = Commit {
            command_type: (*text).into(),
            principal: (*text).into(),
            owner: crate::id::OwnerId::trusted(*text),
            result: (version % 2 == 0).then(|| result.into()),
            ..commit(&key("a"), version, text)
        };
        let receipt = append(&*log, &commit).await;
        all.push(super::samples::stored(commit, receipt));
    }
    save_snapshot(&stores, &key("a"), 40).await;
    load(&stores, &key("a"), &all).await;
}

async fn r58_a_probe_of_an_unknown_aggregate_finds_nothing(stores: Stores) {
    append_versions(&*stores.log(), &key("a"), 2).await;
    for request in [None, Some(RequestId::trusted("unknown"))] {
        let probe = stores
            .history()
            .probe(&key("unknown"), request.as_ref())
            .await
            .unwrap();
        assert_eq!(probe.newest_version, 0, "newest version");
        assert!(probe.request.is_none(), "a request that nobody sent");
    }
}

async fn r58_a_probe_sees_the_newest_version_as_soon_as_it_is_appended(stores: Stores) {
    let (log, history) = (stores.log(), stores.history());
    for version in 1..=20 {
        append(
            &*log,
            &commit(&key("a"), version, &format!("request-{version}")),
        )
        .await;
        let probe = history.probe(&key("a"), None).await.unwrap();
        assert_eq!(probe.newest_version, version, "newest version");
        assert!(probe.request.is_none(), "a request that nobody asked for");
    }
    // A snapshot says nothing of the newest version.
    save_snapshot(&stores, &key("a"), 5).await;
    let probe = history.probe(&key("a"), None).await.unwrap();
    assert_eq!(
        probe.newest_version, 20,
        "newest version with a snapshot of version 5"
    );
}

async fn r58_a_probe_finds_the_request_it_is_asked_for(stores: Stores) {
    let history = stores.history();
    let all = append_versions(&*stores.log(), &key("a"), 5).await;
    for commit in &all {
        let probe = history
            .probe(&key("a"), Some(&commit.request_id))
            .await
            .unwrap();
        assert_eq!(probe.newest_version, 5, "newest version");
        assert_same(&probe.request.expect("the request has committed"), commit);
    }
    let unknown = RequestId::trusted("a-6");
    let probe = history.probe(&key("a"), Some(&unknown)).await.unwrap();
    assert_eq!(probe.newest_version, 5, "newest version");
    assert!(probe.request.is_none(), "a request that nobody sent");
}

async fn r58_a_probe_finds_a_request_of_another_aggregate_of_its_type(stores: Stores) {
    let history = stores.history();
    let all = append_versions(&*stores.log(), &key("a"), 1).await;
    let request = &all[0].request_id;
    let probe = history.probe(&key("b"), Some(request)).await.unwrap();
    assert_eq!(
        probe.newest_version, 0,
        "newest version of the aggregate that was asked for"
    );
    assert_same(
        &probe
            .request
            .expect("another aggregate's commit has the request"),
        &all[0],
    );

    for key in [key_of("acme", "account", "a"), key_of("(0)", "cart", "a")] {
        let probe = history.probe(&key, Some(request)).await.unwrap();
        assert_eq!(probe.newest_version, 0, "newest version of {key}");
        assert!(
            probe.request.is_none(),
            "a request of another tenant or type, for {key}"
        );
    }
}

async fn r58_many_probes_at_once_each_get_their_own_answer(stores: Stores) {
    let mut expected = Vec::new();
    for number in 0..APPENDERS {
        let key = key(&format!("a-{number}"));
        let newest = number as Version % 4;
        let all = append_numbered(&stores, number, &key, newest).await;
        expected.push((key, newest, all.first().cloned()));
    }
    let asked = expected.iter().cycle().take(2 * expected.len()).cloned();
    together(asked.map(|(key, newest, first)| {
        let history = stores.history();
        async move {
            let request = first.as_ref().map(|commit| &commit.request_id);
            let probe = history.probe(&key, request).await.unwrap();
            assert_eq!(probe.newest_version, newest, "newest version of {key}");
            match (probe.request, first) {
                (Some(found), Some(first)) => assert_same(&found, &first),
                (None, None) => {}
                (found, first) => panic!("found {found:?}, appended {first:?}"),
            }
        }
    }))
    .await;
}
