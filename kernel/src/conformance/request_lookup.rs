//! The suite of [`RequestLookup`].

use super::cases::run_cases;
use super::samples::{
    append, append_versions, assert_same, commit, key, key_of, refusal, stored, uuid_of,
};
use super::texts::{LOOK_ALIKES, longest};
use super::together::together;
use super::{APPENDERS, Stores};
use crate::commit::Commit;
use crate::id::{AggregateKey, RequestId};
use crate::ports::RequestLookup;

/// Holds look-ups to finding the one commit that a request id made, and no other (R12, R40, R42).
/// Needs `log` and `requests`.
///
/// # Panics
/// Where a case fails.
pub async fn suite(fresh: impl AsyncFn() -> Stores) {
    run_cases!(
        "request_lookup",
        fresh,
        [
            r40_a_request_is_found_as_soon_as_it_is_committed,
            r40_an_unknown_request_is_not_found,
            r40_a_request_is_found_for_its_tenant_and_type_alone,
            r40_a_request_is_found_whichever_aggregate_it_was_for,
            r44_the_request_of_a_refused_commit_is_not_found,
            request_ids_that_look_alike_find_their_own_commits,
            the_longest_request_ids_find_their_own_commits,
            r42_many_look_ups_at_once_each_get_their_own_answer,
        ]
    );
}

async fn find(requests: &dyn RequestLookup, key: &AggregateKey, request: &str) -> Option<Commit> {
    let request = RequestId::trusted(request);
    requests
        .find(&key.tenant, &key.aggregate_type, &request)
        .await
        .unwrap()
}

async fn assert_found(requests: &dyn RequestLookup, expected: &Commit) {
    let request = expected.request_id.as_str();
    match find(requests, &expected.key, request).await {
        Some(found) => assert_same(&found, expected),
        None => panic!("request {request:?} was not found"),
    }
}

async fn assert_not_found(requests: &dyn RequestLookup, key: &AggregateKey, request: &str) {
    if let Some(found) = find(requests, key, request).await {
        panic!(
            "request {request:?} found request {:?} of {}",
            found.request_id, found.key
        );
    }
}

async fn r40_a_request_is_found_as_soon_as_it_is_committed(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    for version in 1..=20 {
        let request = uuid_of(&["request", &version.to_string()]).to_string();
        assert_not_found(&*requests, &key("a"), &request).await;
        let commit = commit(&key("a"), version, &request);
        let receipt = append(&*log, &commit).await;
        assert_found(&*requests, &stored(commit, receipt)).await;
    }
}

async fn r40_an_unknown_request_is_not_found(stores: Stores) {
    assert_not_found(&*stores.requests(), &key("a"), "unknown").await;
    append_versions(&*stores.log(), &key("a"), 3).await;
    for unknown in ["unknown", "a", "a-", "a-11", "%", "a-_", ""] {
        assert_not_found(&*stores.requests(), &key("a"), unknown).await;
    }
}

async fn r40_a_request_is_found_for_its_tenant_and_type_alone(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    let mut expected = Vec::new();
    for (tenant, aggregate_type) in [("acme", "account"), ("globex", "account"), ("acme", "cart")] {
        let commit = commit(&key_of(tenant, aggregate_type, "a"), 1, "same");
        let receipt = append(&*log, &commit).await;
        expected.push(stored(commit, receipt));
    }
    for commit in &expected {
        assert_found(&*requests, commit).await;
    }
    assert_not_found(&*requests, &key_of("globex", "cart", "a"), "same").await;
    assert_not_found(&*requests, &key_of("ACME", "account", "a"), "same").await;
    assert_not_found(&*requests, &key_of("acme", "Account", "a"), "same").await;
}

async fn r40_a_request_is_found_whichever_aggregate_it_was_for(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    for number in 0..100 {
        let expected = append_versions(&*log, &key(&format!("a-{number}")), 2).await;
        assert_found(&*requests, &expected[0]).await;
        assert_found(&*requests, &expected[1]).await;
    }
}

async fn r44_the_request_of_a_refused_commit_is_not_found(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    let expected = append_versions(&*log, &key("a"), 1).await;
    refusal(&*log, &commit(&key("a"), 1, "late")).await;
    refusal(&*log, &commit(&key("b"), 1, "a-1")).await;
    assert_not_found(&*requests, &key("a"), "late").await;
    assert_found(&*requests, &expected[0]).await;
}

async fn request_ids_that_look_alike_find_their_own_commits(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    let mut expected = Vec::new();
    // Every other one is committed: the rest must not be taken for its neighbours.
    for (number, text) in LOOK_ALIKES.iter().enumerate().step_by(2) {
        let commit = commit(&key(&format!("a-{number}")), 1, text);
        let receipt = append(&*log, &commit).await;
        expected.push(stored(commit, receipt));
    }
    for commit in &expected {
        assert_found(&*requests, commit).await;
    }
    for text in LOOK_ALIKES.iter().skip(1).step_by(2) {
        assert_not_found(&*requests, &key("a"), text).await;
    }
}

async fn the_longest_request_ids_find_their_own_commits(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    let commit = commit(&key("a"), 1, &longest('😀'));
    let receipt = append(&*log, &commit).await;
    assert_found(&*requests, &stored(commit, receipt)).await;
    assert_not_found(&*requests, &key("a"), &longest('😁')).await;
}

async fn r42_many_look_ups_at_once_each_get_their_own_answer(stores: Stores) {
    let (log, requests) = (stores.log(), stores.requests());
    let mut expected = Vec::new();
    for number in 0..APPENDERS / 2 {
        expected.extend(append_versions(&*log, &key(&format!("a-{number}")), 1).await);
    }
    // Each request three times, and an unknown one beside each.
    let asked = expected.iter().cycle().take(3 * expected.len()).cloned();
    together(asked.enumerate().map(|(number, expected)| {
        let requests = requests.clone();
        async move {
            assert_found(&*requests, &expected).await;
            assert_not_found(&*requests, &expected.key, &format!("unknown-{number}")).await;
        }
    }))
    .await;
}
