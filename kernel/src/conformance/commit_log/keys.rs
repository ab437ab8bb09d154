//! The two unique keys (R44).

use std::sync::Arc;

use crate::commit::Commit;
use crate::conformance::Stores;
use crate::conformance::samples::{
    all_partitions, append, append_versions, assert_all_same, commit, event, everything, key,
    key_of, refusal, stored,
};
use crate::conformance::texts::{LOOK_ALIKES, longest};
use crate::id::{AggregateKey, OwnerId, SpaceId, Version};
use crate::ports::{AppendError, CommitLog};

pub(super) async fn r44_a_taken_version_is_a_version_conflict(stores: Stores) {
    let log = stores.log();
    append_versions(&*log, &key("a"), 3).await;
    for version in 1..=3 {
        let late = commit(&key("a"), version, "late");
        assert_eq!(
            refusal(&*log, &late).await,
            AppendError::VersionConflict,
            "{version}"
        );
    }
}

pub(super) async fn r44_a_taken_request_id_is_a_duplicate_request(stores: Stores) {
    let log = stores.log();
    append(&*log, &commit(&key("a"), 1, "first")).await;
    append(&*log, &commit(&key("a"), 2, "second")).await;
    for again in [
        commit(&key("a"), 3, "first"),
        commit(&key("a"), 3, "second"),
        commit(&key("another"), 1, "first"),
    ] {
        assert_eq!(refusal(&*log, &again).await, AppendError::DuplicateRequest);
    }
}

pub(super) async fn r44_where_both_keys_are_taken_either_is_named(stores: Stores) {
    let log = stores.log();
    append(&*log, &commit(&key("a"), 1, "first")).await;
    append(&*log, &commit(&key("a"), 2, "second")).await;
    assert_taken(&*log, &commit(&key("a"), 1, "second")).await;
}

pub(super) async fn r54_a_commit_appended_again_is_not_there_twice(stores: Stores) {
    let log = stores.log();
    let once = commit(&key("a"), 1, "first");
    let receipt = append(&*log, &once).await;
    assert_taken(&*log, &once).await;
    let found = everything(&*log, &key("a")).await;
    assert_all_same(&found, &[stored(once, receipt)]);
}

async fn assert_taken(log: &dyn CommitLog, commit: &Commit) {
    let error = refusal(log, commit).await;
    let taken = matches!(
        error,
        AppendError::VersionConflict | AppendError::DuplicateRequest
    );
    assert!(
        taken,
        "both keys are taken, so one of them has to be named, but: {error:?}"
    );
}

pub(super) async fn r44_a_request_id_belongs_to_its_tenant_and_type(stores: Stores) {
    let log = stores.log();
    for key in [
        key_of("acme", "account", "a"),
        key_of("globex", "account", "a"),
        key_of("acme", "cart", "a"),
        key_of("acme", "order", "b"),
    ] {
        append(&*log, &commit(&key, 1, "one-request")).await;
    }
}

pub(super) async fn r44_a_request_id_is_taken_whoever_comes_with_it(stores: Stores) {
    let log = stores.log();
    append(&*log, &commit(&key("a"), 1, "first")).await;
    let again = commit(&key("b"), 1, "first");
    for again in [
        Commit {
            owner: OwnerId::trusted("bob"),
            ..again.clone()
        },
        Commit {
            space: SpaceId::none(),
            ..again.clone()
        },
        Commit {
            command_type: Arc::from("withdraw"),
            ..again.clone()
        },
        Commit {
            principal: Arc::from(""),
            ..again
        },
    ] {
        assert_eq!(refusal(&*log, &again).await, AppendError::DuplicateRequest);
    }
}

pub(super) async fn r44_a_version_belongs_to_its_tenant_type_and_id(stores: Stores) {
    let log = stores.log();
    // Parts that run into each other when they are joined carelessly are among them.
    let keys = [
        key_of("acme", "account", "a"),
        key_of("globex", "account", "a"),
        key_of("acme", "cart", "a"),
        key_of("acme", "account", "b"),
        key_of("a", "bc", "d"),
        key_of("ab", "c", "d"),
        key_of("a", "b", "cd"),
        key_of("a:b", "c", "d"),
        key_of("a", "b:c", "d"),
    ];
    assert_all_apart(&*log, &keys).await;
}

pub(super) async fn r44_a_refused_append_takes_neither_key(stores: Stores) {
    let log = stores.log();
    append(&*log, &commit(&key("a"), 1, "first")).await;

    refusal(&*log, &commit(&key("a"), 1, "second")).await;
    append(&*log, &commit(&key("a"), 2, "second")).await;

    refusal(&*log, &commit(&key("a"), 3, "first")).await;
    refusal(&*log, &commit(&key("b"), 1, "first")).await;
    append(&*log, &commit(&key("a"), 3, "third")).await;
    append(&*log, &commit(&key("b"), 1, "fourth")).await;
}

pub(super) async fn r44_a_refused_append_changes_nothing(stores: Stores) {
    let log = stores.log();
    let before = append_versions(&*log, &key("a"), 2).await;
    let heads = log.heads(&all_partitions()).await.unwrap();

    for late in [commit(&key("a"), 2, "late"), commit(&key("b"), 1, "a-2")] {
        let events = vec![event(r#"{"late":true}"#); 5].into();
        refusal(&*log, &Commit { events, ..late }).await;
    }

    let found = everything(&*log, &key("a")).await;
    assert_all_same(&found, &before);
    let other = everything(&*log, &key("b")).await;
    assert_all_same(&other, &[]);
    let mut found = log.heads(&all_partitions()).await.unwrap();
    found.retain(|head| !heads.contains(head));
    assert!(found.is_empty(), "heads that moved: {found:?}");
}

pub(super) async fn r44_aggregate_ids_that_look_alike_are_different(stores: Stores) {
    let keys: Vec<_> = LOOK_ALIKES.iter().map(|text| key(text)).collect();
    assert_all_apart(&*stores.log(), &keys).await;
}

pub(super) async fn r44_tenants_that_look_alike_are_different(stores: Stores) {
    let keys: Vec<_> = LOOK_ALIKES
        .iter()
        .map(|text| key_of(text, "account", "a"))
        .collect();
    assert_all_apart(&*stores.log(), &keys).await;
}

pub(super) async fn r44_types_that_look_alike_are_different(stores: Stores) {
    let keys: Vec<_> = LOOK_ALIKES
        .iter()
        .map(|text| key_of("(0)", text, "a"))
        .collect();
    assert_all_apart(&*stores.log(), &keys).await;
}

pub(super) async fn r44_request_ids_that_look_alike_are_different(stores: Stores) {
    let log = stores.log();
    let mut expected = Vec::new();
    for (version, text) in (1..).zip(LOOK_ALIKES) {
        let commit = commit(&key("a"), version, text);
        let receipt = append(&*log, &commit).await;
        expected.push(stored(commit, receipt));
    }
    let found = everything(&*log, &key("a")).await;
    assert_all_same(&found, &expected);
    let newest = expected.len() as Version;
    for text in LOOK_ALIKES {
        let again = commit(&key("a"), newest + 1, text);
        assert_eq!(
            refusal(&*log, &again).await,
            AppendError::DuplicateRequest,
            "{text:?}"
        );
    }
}

pub(super) async fn r44_the_longest_ids_are_told_apart_by_their_last_character(stores: Stores) {
    let texts = [longest('😀'), longest('😁'), longest('é')];
    let log = stores.log();
    let keys: Vec<_> = texts
        .iter()
        .flat_map(|text| {
            [
                key(text),
                key_of(text, "account", "a"),
                key_of("(0)", text, "a"),
            ]
        })
        .collect();
    assert_all_apart(&*log, &keys).await;

    for text in &texts {
        let commit = Commit {
            owner: OwnerId::trusted(text.as_str()),
            space: SpaceId::trusted(text.as_str()),
            ..commit(&key_of(text, text, text), 1, text)
        };
        let receipt = append(&*log, &commit).await;
        let found = everything(&*log, &commit.key).await;
        assert_all_same(&found, &[stored(commit, receipt)]);
    }
}

/// Every aggregate takes its own version 1, and each is read back alone.
async fn assert_all_apart(log: &dyn CommitLog, keys: &[AggregateKey]) {
    let mut expected = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let commit = commit(key, 1, &format!("request-{number}"));
        let receipt = append(log, &commit).await;
        expected.push(stored(commit, receipt));
    }
    for commit in expected {
        let found = everything(log, &commit.key).await;
        assert_all_same(&found, std::slice::from_ref(&commit));
    }
}
