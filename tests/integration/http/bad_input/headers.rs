//! Headers that can't be used, disagree, or ask for what nothing here can do.

use serde_json::json;

use super::{Case, all_are_refused, lock};

#[tokio::test]
async fn a_header_that_can_not_be_used_is_named() {
    let bad: [(&str, &[u8]); 14] = [
        ("Command-Wait-Stage", b"DONE"),
        ("Command-Wait-Stage", b""),
        ("Command-Wait-Stage", b"\xff\xfe"),
        ("Command-Wait-Timeout", b"-1"),
        ("Command-Wait-Timeout", b"0"),
        ("Command-Wait-Timeout", b"300001"),
        ("Command-Wait-Timeout", b"NaN"),
        ("Command-Wait-Timeout", b"1.5"),
        ("Command-Wait-Timout", b"-1"),
        ("Command-Aggregate-Version", b"-1"),
        ("Command-Aggregate-Version", b"1.0"),
        ("Command-Aggregate-Version", b"99999999999999999999"),
        ("Command-Local-First", b"maybe"),
        ("Command-Wait-Tail-Stage", b"SNAPSHOT"),
    ];
    all_are_refused(|client| {
        let case = |(name, value): (&'static str, &[u8])| {
            let request = lock(client).bytes_header(name, value);
            let case = Case::new(name, request, (400, "wow.command.parameter-invalid"));
            case.naming(name)
        };
        bad.map(case).into()
    })
    .await;
}

#[tokio::test]
async fn r3_a_header_that_is_there_twice_is_refused_though_both_agree() {
    let names = [
        "Command-Aggregate-Id",
        "Command-Tenant-Id",
        "Command-Owner-Id",
        "Command-Space-Id",
        "Command-Request-Id",
        "Command-Wait-Stage",
        "Command-Wait-Timeout",
        "Command-Aggregate-Version",
        "Content-Type",
        "Authorization",
    ];
    all_are_refused(|client| {
        let case = |name: &'static str| {
            // In another case the second time: a header's name has none.
            let request = lock(client).header(name, "1");
            let request = request.header(&name.to_ascii_lowercase(), "1");
            let case = Case::new(name, request, (400, "wow.command.parameter-invalid"));
            case.naming(name)
        };
        names.map(case).into()
    })
    .await;
}

#[tokio::test]
async fn r8_a_request_id_that_is_none_or_ours_is_refused() {
    let overlong = "x".repeat(129);
    let bad = [
        ("reserved", "wow:s:example:TransferSaga:1:1:0"),
        ("with a blank", "a b"),
        ("empty", ""),
        ("overlong", &overlong),
    ];
    all_are_refused(|client| {
        let refusal = (400, "wow.command.request-id-invalid");
        let case = |(what, id): (&'static str, &str)| {
            Case::new(what, lock(client).header("Command-Request-Id", id), refusal)
        };
        let mut cases: Vec<_> = bad.map(case).into();
        let not_ascii = lock(client).bytes_header("Command-Request-Id", "é".as_bytes());
        cases.push(Case::new("not ASCII", not_ascii, refusal));
        cases
    })
    .await;
}

#[tokio::test]
async fn r61_a_stage_that_nothing_can_reach_is_refused_at_once() {
    all_are_refused(|client| {
        let wait = |stage| lock(client).header("Command-Wait-Stage", stage);
        let saga = || wait("SAGA_HANDLED");
        let requests = [
            ("no projection", wait("PROJECTED")),
            ("no event processor", wait("EVENT_HANDLED")),
            (
                "no such saga",
                saga().header("Command-Wait-Processor", "NoSuchSaga"),
            ),
            (
                "no such function",
                saga().header("Command-Wait-Function", "none"),
            ),
            (
                "no such context",
                saga().header("Command-Wait-Context", "none"),
            ),
        ];
        let refusal = (400, "wow.wait.stage-unavailable");
        requests
            .map(|(what, request)| Case::new(what, request, refusal))
            .into()
    })
    .await;
}

#[tokio::test]
async fn r53_a_version_that_is_not_the_current_one_is_refused() {
    all_are_refused(|client| {
        let expect = |version| lock(client).header("Command-Aggregate-Version", version);
        let refusal = (409, "wow.command.version-mismatch");
        vec![
            Case::new("a later one", expect("7"), refusal),
            Case::new("an earlier one", expect("0"), refusal),
        ]
    })
    .await;
}

#[tokio::test]
async fn r2_an_unknown_command_type_is_a_404_and_one_that_is_missing_a_400() {
    all_are_refused(|client| {
        let send = || client.post("/wow/command/send", &json!({}));
        let unknown = |name, value| send().header(name, value);
        let refusal = (404, "wow.command.type-unknown");
        let missing = (400, "wow.command.parameter-invalid");
        vec![
            Case::new(
                "a command",
                unknown("Command-Type", "no_such_command"),
                refusal,
            ),
            Case::new(
                "an aggregate",
                unknown("Command-Type", "prepare").header("Command-Aggregate-Name", "none"),
                refusal,
            ),
            Case::new("none", send(), missing).naming("Command-Type"),
        ]
    })
    .await;
}
