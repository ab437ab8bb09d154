#![allow(clippy::unwrap_used, reason = "tests")]

use actix_web::http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

fn map(headers: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

fn plan(headers: &[(&str, &str)]) -> Result<WaitPlan, CommandError> {
    let map = map(headers);
    let headers = RequestHeaders::read(&map)?;
    headers.wait_plan(Duration::from_secs(30), Duration::from_secs(300))
}

/// The header that an error names.
fn named<T: std::fmt::Debug>(result: Result<T, CommandError>) -> String {
    match result {
        Err(CommandError::ParameterInvalid { name, .. }) => name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_header_of_the_contract_may_be_there_once() {
    for name in [
        "Command-Tenant-Id",
        "Command-Owner-Id",
        "Command-Space-Id",
        "Wow-Space-Id",
        "Command-Aggregate-Id",
        "Command-Aggregate-Version",
        "Command-Request-Id",
        "Command-Local-First",
        "Command-Wait-Stage",
        "Command-Wait-Context",
        "Command-Wait-Processor",
        "Command-Wait-Function",
        "Command-Wait-Timeout",
        "Command-Wait-Timout",
        "Command-Wait-Tail-Stage",
        "Command-Wait-Tail-Context",
        "Command-Wait-Tail-Processor",
        "Command-Wait-Tail-Function",
        "Command-Type",
        "Command-Aggregate-Context",
        "Command-Aggregate-Name",
        "Authorization",
        "Content-Type",
        "traceparent",
    ] {
        let once = map(&[(name, "1")]);
        assert!(RequestHeaders::read(&once).is_ok(), "{name}");
        let lower = name.to_ascii_lowercase();
        let twice = map(&[(name, "1"), (&lower, "1")]);
        assert_eq!(named(RequestHeaders::read(&twice)), name);
    }
    let kept = map(&[("Command-Header-A", "1"), ("command-header-a", "1")]);
    assert_eq!(named(RequestHeaders::read(&kept)), "Command-Header-a");
}

#[test]
fn r3_an_empty_identity_header_is_refused() {
    for (known, name) in [
        (Known::Tenant, "Command-Tenant-Id"),
        (Known::Owner, "Command-Owner-Id"),
        (Known::Space, "Command-Space-Id"),
        (Known::WowSpace, "Wow-Space-Id"),
        (Known::AggregateId, "Command-Aggregate-Id"),
    ] {
        let map = map(&[(name, "")]);
        let read = RequestHeaders::read(&map).unwrap().identity(known, "fact");
        let empty = CommandError::IdentityInvalid {
            fact: "fact".into(),
            fault: IdFault::Empty,
        };
        assert_eq!(read, Err(empty), "{name}");
    }
}

#[test]
fn r60_the_stage_is_snapshot_unless_given_in_whatever_case() {
    assert_eq!(plan(&[]).unwrap(), WaitPlan::default());
    for (text, stage) in [
        ("SENT", Stage::Sent),
        ("processed", Stage::Processed),
        ("Snapshot", Stage::Snapshot),
        ("PROJECTED", Stage::Projected),
        ("event_handled", Stage::EventHandled),
        ("SAGA_HANDLED", Stage::SagaHandled),
    ] {
        assert_eq!(plan(&[("Command-Wait-Stage", text)]).unwrap().stage, stage);
    }
    for bad in ["", "DONE", "SNAPSHOT,SENT", "SNAPSHO"] {
        assert_eq!(
            named(plan(&[("Command-Wait-Stage", bad)])),
            "Command-Wait-Stage",
            "{bad}"
        );
    }
}

#[test]
fn r61_context_processor_and_function_narrow_the_stage() {
    let plan = plan(&[
        ("Command-Wait-Stage", "PROJECTED"),
        ("Command-Wait-Context", "example"),
        ("Command-Wait-Processor", "OrderSummary"),
        ("Command-Wait-Function", ""),
    ])
    .unwrap();
    assert_eq!(plan.filter.context.as_deref(), Some("example"));
    assert_eq!(plan.filter.processor.as_deref(), Some("OrderSummary"));
    assert_eq!(plan.filter.function, None);
}

#[test]
fn r62_a_tail_goes_with_a_saga() {
    let saga = ("Command-Wait-Stage", "SAGA_HANDLED");
    let tail = ("Command-Wait-Tail-Stage", "SNAPSHOT");
    let found = plan(&[saga, tail, ("Command-Wait-Tail-Context", "example")]).unwrap();
    let filter = StageFilter {
        context: Some("example".to_owned()),
        ..StageFilter::default()
    };
    assert_eq!(found.tail, Some((Stage::Snapshot, filter)));
    for bad in [
        &[tail][..],
        &[("Command-Wait-Stage", "PROJECTED"), tail],
        &[saga, ("Command-Wait-Tail-Processor", "x")],
        &[saga, ("Command-Wait-Tail-Stage", "DONE")],
    ] {
        assert_eq!(named(plan(bad)), "Command-Wait-Tail-Stage", "{bad:?}");
    }
}

#[test]
fn r63_a_timeout_is_1_to_the_most_allowed_in_milliseconds() {
    let timeout = |text| plan(&[("Command-Wait-Timeout", text)]).map(|plan| plan.timeout);
    assert_eq!(timeout("1").unwrap(), Duration::from_millis(1));
    assert_eq!(timeout("300000").unwrap(), Duration::from_secs(300));
    assert_eq!(plan(&[]).unwrap().timeout, Duration::from_secs(30));
    for bad in [
        "",
        "0",
        "-1",
        "+1",
        "1.5",
        "1e3",
        "NaN",
        "0x10",
        "300001",
        "99999999999999999999",
    ] {
        assert_eq!(named(timeout(bad)), "Command-Wait-Timeout", "{bad}");
    }
}

#[test]
fn the_old_spelling_of_the_timeout_is_taken_and_must_agree_with_the_new_one() {
    let old = ("Command-Wait-Timout", "5000");
    assert_eq!(plan(&[old]).unwrap().timeout, Duration::from_secs(5));
    assert_eq!(
        plan(&[old, ("Command-Wait-Timeout", "5000")])
            .unwrap()
            .timeout
            .as_secs(),
        5
    );
    assert_eq!(
        named(plan(&[old, ("Command-Wait-Timeout", "6000")])),
        "Command-Wait-Timeout"
    );
    assert_eq!(
        named(plan(&[("Command-Wait-Timout", "-1")])),
        "Command-Wait-Timout"
    );
}

#[test]
fn r53_an_expected_version_is_a_whole_number_that_is_not_negative() {
    let version = |text| {
        let map = map(&[("Command-Aggregate-Version", text)]);
        RequestHeaders::read(&map).unwrap().expected_version()
    };
    assert_eq!(version("0").unwrap(), Some(0));
    assert_eq!(version("18446744073709551615").unwrap(), Some(u64::MAX));
    for bad in ["", "-1", "+1", "1.0", "a", "18446744073709551616", "1 2"] {
        assert_eq!(named(version(bad)), "Command-Aggregate-Version", "{bad}");
    }
}

#[test]
fn local_first_is_true_or_false_in_whatever_case() {
    let local = |text| {
        let map = map(&[("Command-Local-First", text)]);
        RequestHeaders::read(&map).unwrap().local_first()
    };
    assert_eq!(local("FALSE").unwrap(), Some(false));
    assert_eq!(local("True").unwrap(), Some(true));
    for bad in ["", "no", "0"] {
        assert_eq!(named(local(bad)), "Command-Local-First", "{bad}");
    }
}

#[test]
fn kept_headers_are_bounded_in_number_and_size() {
    let kept = |headers: &[(String, String)]| {
        let headers: Vec<_> = headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        let map = map(&headers);
        let read = RequestHeaders::read(&map)?;
        let kept: Result<Vec<_>, _> = read.kept().collect();
        Ok(kept?.len())
    };
    let header = |n: usize, len: usize| (format!("Command-Header-N{n}"), "v".repeat(len));
    let full: Vec<_> = (0..32).map(|n| header(n, 1024)).collect();
    assert_eq!(kept(&full), Ok(32));
    let more: Vec<_> = (0..33).map(|n| header(n, 1)).collect();
    assert!(named(kept(&more)).starts_with("Command-Header-n"));
    assert_eq!(named(kept(&[header(1, 1025)])), "Command-Header-n1");
    let long = (
        format!("Command-Header-{}", "n".repeat(1025)),
        String::new(),
    );
    assert!(kept(&[long]).is_err());
    for name in [
        "Command-Header-",
        "Command-Header-Traceparent",
        "Command-Header-Tracestate",
    ] {
        assert!(
            kept(&[(name.to_owned(), "v".to_owned())]).is_err(),
            "{name}"
        );
    }
}

#[test]
fn a_value_that_is_not_utf_8_is_refused_by_name() {
    let mut map = HeaderMap::new();
    let name = HeaderName::from_static("command-owner-id");
    map.append(name, HeaderValue::from_bytes(b"\xff\xfe").unwrap());
    let headers = RequestHeaders::read(&map).unwrap();
    assert_eq!(
        named(headers.identity(Known::Owner, "owner")),
        "Command-Owner-Id"
    );
}

#[test]
fn only_a_bearer_token_is_a_token() {
    let bearer = |text| {
        let map = map(&[("Authorization", text)]);
        RequestHeaders::read(&map)
            .unwrap()
            .bearer()
            .unwrap()
            .map(str::to_owned)
    };
    assert_eq!(bearer("Bearer abc").as_deref(), Some("abc"));
    assert_eq!(bearer("bearer  abc").as_deref(), Some("abc"));
    assert_eq!(bearer("Bearer").as_deref(), Some(""));
    assert_eq!(bearer("Basic abc"), None);
    assert_eq!(bearer("Bearerabc"), None);
}

proptest! {
    #[test]
    fn no_header_breaks_the_reader(
        name in "(command|wow)-[a-z-]{0,20}",
        value in proptest::collection::vec(32_u8..=255, 0..40),
    ) {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { return Ok(()) };
        let Ok(value) = HeaderValue::from_bytes(&value) else { return Ok(()) };
        let mut map = HeaderMap::new();
        map.append(name, value);
        if let Ok(headers) = RequestHeaders::read(&map) {
            let _ = headers.wait_plan(Duration::from_secs(30), Duration::from_secs(300));
            let _ = headers.expected_version();
            let _ = headers.kept().count();
        }
    }
}
