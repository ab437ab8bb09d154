use actix_web::test::TestRequest;
use bytes::Bytes;
use std::time::Duration;
use tokio::sync::mpsc;
use wow_kernel::error::CommandError;
use wow_kernel::model::{Rejection, RejectionKind, VariableSource};
use wow_kernel::result::CommandResult;
use wow_kernel::submission::{Body, PermitClass, Source, Submission, SubmittedRequestId, Target};
use wow_kernel::wait::Stage;

use crate::http::fixture::{Recorder, result, send};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn body(submission: &Submission) -> Bytes {
    match &submission.body {
        Body::Json(bytes) => bytes.clone(),
        Body::Typed(_) => panic!("HTTP sends JSON"),
    }
}

fn target(submission: &Submission) -> (Option<&str>, Option<&str>, &str) {
    match &submission.target {
        Target::Named {
            context,
            aggregate,
            command,
        } => (context.as_deref(), aggregate.as_deref(), command),
        Target::Typed(_) => panic!("HTTP knows names"),
    }
}

fn fact(source: Source, value: &str) -> (Source, String) {
    (source, value.to_owned())
}

#[actix_web::test]
async fn a_request_becomes_exactly_what_it_says() {
    let recorder = Recorder::new();
    let request = TestRequest::post()
        .uri("/account/create_account")
        .insert_header(JSON)
        .insert_header(("Command-Aggregate-Id", "sourceId"))
        .insert_header(("Command-Request-Id", "r-1"))
        .insert_header(("Command-Aggregate-Version", "7"))
        .insert_header(("Command-Wait-Stage", "PROCESSED"))
        .insert_header(("Command-Wait-Timeout", "1500"))
        .insert_header(("Command-Local-First", "false"))
        .insert_header(("Command-Space-Id", "s"))
        .insert_header(("Command-Header-Channel", "app"))
        .insert_header(("Authorization", "Bearer good"))
        .insert_header((
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ))
        .append_header(("tracestate", "a=1"))
        .append_header(("tracestate", "b=2"))
        .set_payload(r#"{"name":"source","balance":100}"#);
    let answer = send(&recorder, request).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("wow-error-code"), "Ok");
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["aggregateId"], "a-1");

    let submission = recorder.submission();
    let names = (Some("example"), Some("account"), "create_account");
    assert_eq!(target(&submission), names);
    assert_eq!(body(&submission), r#"{"name":"source","balance":100}"#);
    assert_eq!(
        submission.facts.aggregate_id,
        [fact(Source::Header, "sourceId")]
    );
    assert_eq!(submission.facts.space, [fact(Source::Header, "s")]);
    assert!(submission.facts.tenant.is_empty() && submission.facts.owner.is_empty());
    assert!(matches!(&submission.request_id, Some(SubmittedRequestId::Caller(id)) if id == "r-1"));
    assert_eq!(submission.expected_version, Some(7));
    assert_eq!(submission.wait.stage, Stage::Processed);
    assert_eq!(submission.wait.timeout, Duration::from_millis(1500));
    assert_eq!(submission.local_first, Some(false));
    assert_eq!(submission.principal.subject.as_deref(), Some("alice"));
    assert_eq!(submission.permits, PermitClass::Caller);
    assert!(submission.chain.is_empty() && submission.variables.is_empty());
    let headers: Vec<_> = submission.headers.iter().collect();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    assert_eq!(
        headers,
        [
            (&"channel".to_owned(), &"app".to_owned()),
            (&"traceparent".to_owned(), &parent),
            (&"tracestate".to_owned(), &"a=1,b=2".to_owned()),
        ]
    );
}

#[actix_web::test]
async fn r60_r63_a_request_that_says_nothing_waits_for_the_snapshot_half_a_minute() {
    let recorder = Recorder::new();
    let request = TestRequest::put().uri("/owner/o-1/cart/view_cart");
    assert_eq!(send(&recorder, request).await.status, 200);
    let submission = recorder.submission();
    assert_eq!(submission.wait.stage, Stage::Snapshot);
    assert_eq!(submission.wait.timeout, Duration::from_secs(30));
    assert!(submission.request_id.is_none() && submission.expected_version.is_none());
    assert!(body(&submission).is_empty());
    assert_eq!(submission.facts.owner, [fact(Source::Path, "o-1")]);
    assert!(
        submission.facts.aggregate_id.is_empty(),
        "admission makes the owner the id"
    );
    assert_eq!(submission.principal.subject, None);
    assert!(submission.headers.contains_key("traceparent"));
}

#[actix_web::test]
async fn r3_every_source_of_a_fact_is_handed_on_for_admission_to_compare() {
    let recorder = Recorder::new();
    let request = TestRequest::put()
        .uri("/tenant/t-1/owner/o%201/sales-order/7/rename")
        .insert_header(JSON)
        .insert_header(("command-tenant-id", "t-2"))
        .insert_header(("COMMAND-OWNER-ID", "o 1"))
        .insert_header(("Command-Space-Id", "s-1"))
        .insert_header(("Wow-Space-Id", "s-2"))
        .insert_header(("Command-Aggregate-Id", "8"))
        .set_payload(r#"{"order":"9"}"#);
    assert_eq!(send(&recorder, request).await.status, 200);
    let facts = recorder.submission().facts;
    assert_eq!(
        facts.tenant,
        [fact(Source::Path, "t-1"), fact(Source::Header, "t-2")]
    );
    assert_eq!(
        facts.owner,
        [fact(Source::Path, "o 1"), fact(Source::Header, "o 1")]
    );
    assert_eq!(
        facts.space,
        [fact(Source::Header, "s-1"), fact(Source::Header, "s-2")]
    );
    assert_eq!(
        facts.aggregate_id,
        [fact(Source::Path, "7"), fact(Source::Header, "8")]
    );
}

#[actix_web::test]
async fn path_and_header_variables_are_handed_on() {
    let recorder = Recorder::new();
    let request = TestRequest::post()
        .uri("/sales-order/7/items/a%2Fb")
        .insert_header(JSON)
        .insert_header(("X-Picker", "bob"))
        .set_payload("{}");
    assert_eq!(send(&recorder, request).await.status, 200);
    let variables = recorder.submission().variables;
    let found: Vec<_> = variables
        .iter()
        .map(|v| (v.source, v.name.as_str(), v.value.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (VariableSource::Path, "itemId", "a/b"),
            (VariableSource::Header, "X-Picker", "bob"),
        ]
    );
}

#[actix_web::test]
async fn the_facade_takes_any_command_by_name() {
    let recorder = Recorder::new();
    let request = TestRequest::post()
        .uri("/wow/command/send")
        .insert_header(JSON)
        .insert_header(("Command-Type", "pick"))
        .insert_header(("Command-Aggregate-Context", "example"))
        .insert_header(("Command-Aggregate-Name", "order"))
        .insert_header(("Command-Tenant-Id", "t"))
        .insert_header(("Command-Owner-Id", "o"))
        .insert_header(("Command-Aggregate-Id", "7"))
        .insert_header(("X-Picker", "bob"))
        .set_payload(r#"{"item":"1"}"#);
    assert_eq!(send(&recorder, request).await.status, 200);
    let submission = recorder.submission();
    assert_eq!(
        target(&submission),
        (Some("example"), Some("order"), "pick")
    );
    assert_eq!(body(&submission), r#"{"item":"1"}"#);
    assert_eq!(submission.facts.tenant, [fact(Source::Header, "t")]);
    assert_eq!(submission.facts.owner, [fact(Source::Header, "o")]);
    assert_eq!(submission.facts.aggregate_id, [fact(Source::Header, "7")]);
    assert_eq!(submission.variables.len(), 1);
}

#[actix_web::test]
async fn the_facade_needs_no_more_than_a_command_name_that_is_unique() {
    let recorder = Recorder::new();
    let request = TestRequest::post()
        .uri("/wow/command/send")
        .insert_header(JSON)
        .insert_header(("Command-Type", "prepare"))
        .set_payload("{}");
    assert_eq!(send(&recorder, request).await.status, 200);
    assert_eq!(target(&recorder.submission()), (None, None, "prepare"));
}

#[actix_web::test]
async fn r2_the_facade_knows_no_command_that_the_node_does_not_know() {
    for (name, aggregate) in [
        ("nothing", None),
        ("delete_aggregate", None),
        ("prepare", Some("cart")),
    ] {
        let recorder = Recorder::new();
        let mut request = TestRequest::post()
            .uri("/wow/command/send")
            .insert_header(JSON)
            .insert_header(("Command-Type", name));
        if let Some(aggregate) = aggregate {
            request = request.insert_header(("Command-Aggregate-Name", aggregate));
        }
        let answer = send(&recorder, request.set_payload("{}")).await;
        assert_eq!(answer.status, 404);
        assert_eq!(answer.code(), "wow.command.type-unknown");
        assert!(recorder.submissions.lock().is_empty());
    }
}

#[actix_web::test]
async fn a_command_that_failed_answers_with_its_result_and_the_status_of_its_code() {
    let frozen = Rejection::new("account.frozen", "the account is frozen");
    for (error, status, code) in [
        (
            CommandError::Rejected(frozen.clone()),
            400,
            "account.frozen",
        ),
        (
            CommandError::Rejected(frozen.kind(RejectionKind::Conflict)),
            409,
            "account.frozen",
        ),
        (CommandError::WaitTimeout, 504, "wow.wait.timeout"),
        (CommandError::AggregateExists, 409, "wow.aggregate.exists"),
        (
            CommandError::StorageUnavailable,
            503,
            "wow.storage.unavailable",
        ),
    ] {
        let recorder = Recorder::new();
        *recorder.answer.lock() = Ok(CommandResult {
            error: Some(error),
            ..result()
        });
        let request = TestRequest::post().uri("/account/a-1/prepare");
        let answer = send(&recorder, request.insert_header(JSON).set_payload("{}")).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.code(), code);
        assert_eq!(answer.json()["requestId"], "r-1");
        assert_eq!(answer.header("retry-after").is_empty(), status != 503);
    }
}

#[actix_web::test]
async fn a_request_that_never_became_a_command_answers_with_its_error_alone() {
    for (error, status, code) in [
        (CommandError::Denied, 403, "wow.access.denied"),
        (
            CommandError::Unauthenticated,
            401,
            "wow.access.unauthenticated",
        ),
        (CommandError::ShuttingDown, 503, "wow.node.shutting-down"),
    ] {
        let recorder = Recorder::new();
        *recorder.answer.lock() = Err(error);
        let request = TestRequest::post().uri("/account/a-1/prepare");
        let answer = send(&recorder, request.insert_header(JSON).set_payload("{}")).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.code(), code);
        let keys: Vec<_> = answer.json().as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            keys,
            ["bindingErrors", "errorCode", "errorMsg", "succeeded"]
        );
        assert_eq!(answer.header("retry-after").is_empty(), status != 503);
        assert_eq!(answer.header("www-authenticate").is_empty(), status != 401);
    }
}

#[actix_web::test]
async fn r64_route_and_facade_stream_to_those_who_ask() {
    for (uri, name) in [
        ("/account/a-1/prepare", None),
        ("/wow/command/send", Some("prepare")),
    ] {
        let recorder = Recorder::new();
        let (sender, receiver) = mpsc::channel(8);
        for stage in [Stage::Sent, Stage::Processed] {
            sender
                .try_send(Ok(CommandResult { stage, ..result() }))
                .unwrap();
        }
        drop(sender);
        *recorder.signals.lock() = Some(receiver);
        let mut request = TestRequest::post()
            .uri(uri)
            .insert_header(JSON)
            .insert_header(("Accept", "text/event-stream"))
            .set_payload("{}");
        if let Some(name) = name {
            request = request.insert_header(("Command-Type", name));
        }
        let answer = send(&recorder, request).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/event-stream");
        assert_eq!(answer.header("wow-error-code"), "Ok");
        let names: Vec<_> = answer
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .collect();
        assert_eq!(names, ["SENT", "PROCESSED"]);
    }
}

#[actix_web::test]
async fn a_stream_that_can_not_begin_is_one_event_named_by_its_code() {
    let recorder = Recorder::new();
    let request = TestRequest::post()
        .uri("/account/a-1/prepare")
        .insert_header(JSON)
        .insert_header(("Accept", "text/event-stream"))
        .insert_header(("Command-Wait-Stage", "DONE"))
        .set_payload("{}");
    let answer = send(&recorder, request).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("wow-error-code"),
        "wow.command.parameter-invalid"
    );
    assert!(
        answer
            .body
            .contains("\nevent: wow.command.parameter-invalid\ndata: {")
    );
    assert!(recorder.submissions.lock().is_empty());
}
