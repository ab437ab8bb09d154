use std::sync::Arc;

use actix_web::test::TestRequest;
use serde_json::json;
use serde_json::value::RawValue;
use wow_kernel::commit::{Commit, RecordedEvent};
use wow_kernel::error::CommandError;
use wow_kernel::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, NodeName, OwnerId, PartitionNo, RequestId,
    SpaceId, TenantId, Version,
};
use wow_kernel::submission::Source;

use crate::http::fixture::{Asked, Recorder, send};
use crate::http::gateway::StateAt;

const COMMAND: &str = "0190163e-9d6a-7e3c-8d2a-5b1f6c1d2e3f";

fn key() -> AggregateKey {
    AggregateKey {
        tenant: TenantId::default_tenant(),
        aggregate_type: AggregateType::trusted("account"),
        id: AggregateId::trusted("a-1"),
    }
}

fn commit(version: Version) -> Commit {
    let body = r#"{"amount":9223372036854775807}"#.to_owned();
    Commit {
        partition: PartitionNo(1),
        position: version,
        key: key(),
        version,
        request_id: RequestId::trusted("r-1"),
        command_id: CommandId::parse(COMMAND).unwrap(),
        command_type: Arc::from("prepare"),
        principal: Arc::from("alice"),
        owner: OwnerId::trusted("o"),
        space: SpaceId::trusted("s"),
        origin: NodeName::trusted("n"),
        events: Arc::from([RecordedEvent {
            name: Arc::from("prepared"),
            revision: 2,
            body: RawValue::from_string(body).unwrap(),
        }]),
        result: None,
        headers: [("channel".to_owned(), "app".to_owned())].into(),
        committed_at: 1_700_000_000_000,
    }
}

#[actix_web::test]
async fn a_state_is_answered_byte_for_byte() {
    for (uri, at) in [
        ("/account/a-1/state", StateAt::Latest),
        ("/account/a-1/state/3", StateAt::Version(3)),
        ("/account/a-1/state/0", StateAt::Version(0)),
        (
            "/account/a-1/state/time/1700000000000",
            StateAt::Time(1_700_000_000_000),
        ),
    ] {
        let recorder = Recorder::new();
        let answer = send(&recorder, TestRequest::get().uri(uri)).await;
        assert_eq!(
            (answer.status, answer.header("wow-error-code")),
            (200, "Ok")
        );
        assert_eq!(answer.body, r#"{"balance":18446744073709551615}"#);
        assert_eq!(answer.header("cache-control"), "no-store");
        match &recorder.asked.lock()[..] {
            [(request, asked)] => {
                assert_eq!(*asked, Asked::State(at));
                assert_eq!(request.aggregate_type.as_str(), "account");
                let id = [(Source::Path, "a-1".to_owned())];
                assert_eq!(request.facts.aggregate_id, id);
            }
            other => panic!("{other:?}"),
        };
    }
}

#[actix_web::test]
async fn a_type_whose_owner_is_the_id_is_read_by_its_owner() {
    let recorder = Recorder::new();
    let request = TestRequest::get()
        .uri("/owner/o-1/cart/state")
        .insert_header(("Authorization", "Bearer good"))
        .insert_header(("Command-Owner-Id", "o-1"));
    assert_eq!(send(&recorder, request).await.status, 200);
    match &recorder.asked.lock()[..] {
        [(request, _)] => {
            let twice = [
                (Source::Path, "o-1".to_owned()),
                (Source::Header, "o-1".to_owned()),
            ];
            assert_eq!(request.facts.owner, twice);
            assert!(request.facts.aggregate_id.is_empty());
            assert_eq!(request.principal.subject.as_deref(), Some("alice"));
        }
        other => panic!("{other:?}"),
    };
}

#[actix_web::test]
async fn what_can_not_be_read_answers_with_its_code() {
    for (error, status) in [
        (CommandError::NotFound, 404),
        (CommandError::VersionNotReached { version: 9 }, 400),
        (CommandError::OtherOwner, 403),
        (CommandError::StorageUnavailable, 503),
    ] {
        let recorder = Recorder::new();
        let code = error.code();
        *recorder.state.lock() = Err(error);
        let answer = send(&recorder, TestRequest::get().uri("/account/a-1/state/9")).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, &*code));
    }
}

#[actix_web::test]
async fn a_version_time_or_range_that_is_none_is_a_400_that_names_it() {
    for (uri, name) in [
        ("/account/a/state/x", "version"),
        ("/account/a/state/-1", "version"),
        ("/account/a/state/", "version"),
        ("/account/a/state/99999999999999999999", "version"),
        ("/account/a/state/time/soon", "createTime"),
        ("/account/a/state/time/18446744073709551615", "createTime"),
        ("/account/a/event/0/5", "headVersion"),
        ("/account/a/event/x/5", "headVersion"),
        ("/account/a/event/5/4", "tailVersion"),
        ("/account/a/state/tracing?headVersion=0", "headVersion"),
        (
            "/account/a/state/tracing?headVersion=5&tailVersion=4",
            "tailVersion",
        ),
        ("/account/a/state/tracing?limit=-1", "limit"),
        ("/account/a/state/tracing?limit=0", "limit"),
        ("/account/a/state/tracing?limit=1&limit=1", "limit"),
        ("/account/a/state/tracing?limit", "limit"),
    ] {
        let recorder = Recorder::new();
        let answer = send(&recorder, TestRequest::get().uri(uri)).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "wow.command.parameter-invalid"),
            "{uri}"
        );
        assert_eq!(answer.json()["bindingErrors"][0]["name"], name, "{uri}");
        assert!(recorder.asked.lock().is_empty());
    }
}

#[actix_web::test]
async fn a_snapshot_has_every_key_of_the_contract_and_no_other() {
    let recorder = Recorder::new();
    let answer = send(&recorder, TestRequest::get().uri("/account/a-1/snapshot")).await;
    assert!(
        answer
            .body
            .contains(r#""state":{"balance":18446744073709551615}"#)
    );
    let expected = json!({
        "contextName": "example",
        "aggregateName": "account",
        "tenantId": "(0)",
        "ownerId": "o",
        "spaceId": "s",
        "aggregateId": "a-1",
        "version": 3,
        "eventId": COMMAND,
        "firstOperator": "alice",
        "operator": "bob",
        "firstEventTime": 1,
        "eventTime": 2,
        "state": {"balance": u64::MAX},
        "snapshotTime": 3,
        "tags": {"k": ["v"]},
        "deleted": false,
    });
    assert_eq!(answer.json(), expected);
}

fn commit_json(version: Version) -> serde_json::Value {
    json!({
        "id": COMMAND,
        "contextName": "example",
        "aggregateName": "account",
        "aggregateId": "a-1",
        "tenantId": "(0)",
        "ownerId": "o",
        "spaceId": "s",
        "commandId": COMMAND,
        "requestId": "r-1",
        "version": version,
        "header": {"channel": "app"},
        "body": [{
            "id": format!("{COMMAND}-1"),
            "name": "prepared",
            "revision": "2",
            "bodyType": "prepared",
            "body": {"amount": i64::MAX},
        }],
        "createTime": 1_700_000_000_000_i64,
    })
}

#[actix_web::test]
async fn commits_have_every_key_of_the_contract_and_no_other() {
    let recorder = Recorder::new();
    *recorder.commits.lock() = vec![commit(1), commit(2)];
    let answer = send(&recorder, TestRequest::get().uri("/account/a-1/event/1/10")).await;
    assert_eq!(answer.json(), json!([commit_json(1), commit_json(2)]));
    assert_eq!(recorder.asked.lock()[0].1, Asked::Commits(1..=10));
}

#[actix_web::test]
async fn a_trace_is_commits_with_the_state_after_each() {
    let recorder = Recorder::new();
    *recorder.commits.lock() = vec![commit(2)];
    let uri = "/account/a-1/state/tracing?headVersion=2&tailVersion=8";
    let answer = send(&recorder, TestRequest::get().uri(uri)).await;
    let mut expected = commit_json(2);
    expected["state"] = json!({"balance": 9_007_199_254_740_993_u64});
    assert_eq!(answer.json(), json!([expected]));
    assert!(
        answer
            .body
            .contains(r#""state":{"balance":9007199254740993}"#)
    );
    assert_eq!(recorder.asked.lock()[0].1, Asked::Trace(2..=8, 1000));
}

#[actix_web::test]
async fn a_limit_keeps_the_last_of_a_trace() {
    // The aggregate is at version 3.
    for (query, range, limit) in [
        ("", 1..=Version::MAX, 1000),
        ("?limit=2", 2..=3, 2),
        ("?limit=9", 1..=3, 9),
        ("?headVersion=3&limit=2", 3..=3, 2),
        ("?tailVersion=2&limit=1", 2..=2, 1),
    ] {
        let recorder = Recorder::new();
        let uri = format!("/account/a-1/state/tracing{query}");
        assert_eq!(
            send(&recorder, TestRequest::get().uri(&uri)).await.status,
            200
        );
        let asked = recorder.asked.lock();
        assert_eq!(
            asked.last().unwrap().1,
            Asked::Trace(range, limit),
            "{query}"
        );
    }
}
