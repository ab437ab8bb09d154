//! A commit comes back as it was given, byte for byte.

use std::sync::Arc;

use crate::commit::{Commit, Headers, RecordedEvent};
use crate::conformance::Stores;
use crate::conformance::samples::{
    append, assert_all_same, commit, event, everything, everything_in, key, raw, stored,
};
use crate::conformance::texts::{LOOK_ALIKES, longest};
use crate::id::{NodeName, OwnerId, SpaceId};
use crate::ports::CommitLog;

/// Bodies whose numbers a detour through a float or a JSON type would change.
const NUMBERS: &[&str] = &[
    r#"{"n":9223372036854775807}"#,
    r#"{"n":-9223372036854775808}"#,
    r#"{"n":18446744073709551615}"#,
    r#"{"n":9007199254740993}"#,
    r#"{"n":123456789012345678901234567890.123456789012345678901234567890}"#,
    r#"{"n":1.10}"#,
    r#"{"n":"1.10"}"#,
    r#"{"n":100.000}"#,
    r#"{"n":0.1000000000000000055511151231257827}"#,
    r#"{"n":-0.0}"#,
    r#"{"n":-0}"#,
    r#"{"n":1e400}"#,
    r#"{"n":1E+2}"#,
    r#"{"n":5e-324}"#,
];

/// Bodies that a JSON type would tidy up, cut or refuse.
const JSON: &[&str] = &[
    r#"{}"#,
    r#"[]"#,
    r#"null"#,
    r#"true"#,
    r#""a text""#,
    r#"{ "b" : 1,  "a" : [ 1 , 2 ] }"#,
    "{\n\t\"lines\": 1\r\n}",
    r#"{"a":1,"a":2}"#,
    r#"{"z":1,"a":2,"":3}"#,
    r#"{"text":"\u00e9 \u0000 \n \/ \" \\ \ud83d\ude00"}"#,
    r#"{"half":"\ud800"}"#,
    r#"{"sql":"'; drop table commit_log; -- $1 ? :name %s {}"}"#,
    r#"{"blank":"  around  ","empty":""}"#,
    r#"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"#,
];

/// Appends one commit and checks what both reads give back.
async fn assert_round_trip(log: &dyn CommitLog, commit: Commit) {
    let receipt = append(log, &commit).await;
    let expected = [stored(commit, receipt)];
    assert_all_same(&everything(log, &expected[0].key).await, &expected);
    let partition = everything_in(log, expected[0].partition).await;
    assert_all_same(&partition[partition.len() - 1..], &expected);
}

/// Appends one aggregate with an event for each body, all in one commit, and each in one.
async fn assert_bodies_round_trip(log: &dyn CommitLog, bodies: &[&str]) {
    let events: Vec<_> = bodies.iter().map(|body| event(body)).collect();
    for (number, event) in events.iter().enumerate() {
        let single = commit(
            &key(&format!("single-{number}")),
            1,
            &format!("single-{number}"),
        );
        assert_round_trip(
            log,
            Commit {
                events: Arc::from([event.clone()]),
                ..single
            },
        )
        .await;
    }
    assert_round_trip(
        log,
        Commit {
            events: events.into(),
            ..commit(&key("all"), 1, "all")
        },
    )
    .await;
}

pub(super) async fn a_commit_comes_back_whole(stores: Stores) {
    let log = stores.log();
    let opened = RecordedEvent {
        name: Arc::from("opened"),
        revision: 3,
        body: raw("{}"),
    };
    let whole = Commit {
        command_type: Arc::from("open"),
        principal: Arc::from("carol@example.org"),
        owner: OwnerId::trusted("carol"),
        space: SpaceId::trusted("garden"),
        origin: NodeName::trusted("node-7.internal:9090"),
        events: Arc::from([opened, event(r#"{"amount":1}"#)]),
        result: Some(Arc::from(raw(r#"{"iban":"DE02"}"#))),
        headers: [("traceparent".into(), "00-4bf9-00f0-01".into())].into(),
        ..commit(&key("a"), 1, "first")
    };
    assert_round_trip(&*log, whole).await;
}

pub(super) async fn the_log_gives_position_and_time_itself(stores: Stores) {
    let log = stores.log();
    let commit = Commit {
        position: 99,
        committed_at: -1,
        ..commit(&key("a"), 1, "first")
    };
    let receipt = append(&*log, &commit).await;
    assert_eq!(receipt.position, 1);
    assert!(
        receipt.committed_at > 0,
        "committed_at {} by the log's clock",
        receipt.committed_at
    );
    assert_all_same(
        &everything(&*log, &key("a")).await,
        &[stored(commit, receipt)],
    );
}

pub(super) async fn no_owner_space_and_principal_come_back_as_none(stores: Stores) {
    let nobody = Commit {
        principal: Arc::from(""),
        owner: OwnerId::none(),
        space: SpaceId::none(),
        headers: Headers::new(),
        ..commit(&key("a"), 1, "first")
    };
    assert_round_trip(&*stores.log(), nobody).await;
}

pub(super) async fn texts_come_back_byte_for_byte(stores: Stores) {
    let log = stores.log();
    let longest = longest('😁');
    for (number, text) in LOOK_ALIKES.iter().copied().chain([&*longest]).enumerate() {
        let key = key(&format!("a-{number}"));
        let texts = Commit {
            command_type: Arc::from(text),
            principal: Arc::from(text),
            owner: OwnerId::trusted(text),
            space: SpaceId::trusted(text),
            origin: NodeName::trusted(text),
            events: Arc::from([RecordedEvent {
                name: Arc::from(text),
                revision: 1,
                body: raw("{}"),
            }]),
            ..commit(&key, 1, &format!("request-{number}"))
        };
        assert_round_trip(&*log, texts).await;
    }
}

pub(super) async fn numbers_come_back_byte_for_byte(stores: Stores) {
    assert_bodies_round_trip(&*stores.log(), NUMBERS).await;
}

pub(super) async fn json_comes_back_byte_for_byte(stores: Stores) {
    assert_bodies_round_trip(&*stores.log(), JSON).await;
}

pub(super) async fn an_entry_of_a_mebibyte_comes_back_whole(stores: Stores) {
    let log = stores.log();
    let empty = Commit {
        events: Arc::from([event("\"\"")]),
        ..commit(&key("a"), 1, "first")
    };
    // Exactly as large as the default of `log.max-entry-bytes` allows, in text that neither
    // repeats for long nor is all of one width.
    let room = (1 << 20) - empty.entry_bytes();
    let mut text: String = (0..)
        .map(|n: u32| format!("{n}é😀"))
        .take(room / 16)
        .collect();
    assert!(text.len() < room, "the text has to leave room to fill up");
    text.push_str(&"x".repeat(room - text.len()));
    let huge = Commit {
        events: Arc::from([event(&format!("\"{text}\""))]),
        ..empty
    };
    assert_eq!(huge.entry_bytes(), 1 << 20);
    assert_round_trip(&*log, huge).await;
}

pub(super) async fn many_events_come_back_in_order(stores: Stores) {
    let events = (0..10_000)
        .map(|number| event(&format!("{{\"n\":{number}}}")))
        .collect();
    let many = Commit {
        events,
        ..commit(&key("a"), 1, "first")
    };
    assert_round_trip(&*stores.log(), many).await;
}

pub(super) async fn results_come_back_byte_for_byte(stores: Stores) {
    let log = stores.log();
    let results = [
        r#"{}"#,
        r#"{ "b":1, "a" : 1.10 }"#,
        r#"{"text":"\u0000 é 😀 \ud800"}"#,
    ];
    for (number, json) in results.iter().chain(NUMBERS).enumerate() {
        let key = key(&format!("a-{number}"));
        let result = Some(Arc::from(raw(json)));
        let commit = commit(&key, 1, &format!("request-{number}"));
        assert_round_trip(&*log, Commit { result, ..commit }).await;
    }
    let none = Commit {
        result: None,
        ..commit(&key("none"), 1, "none")
    };
    assert_round_trip(&*log, none).await;
}

pub(super) async fn headers_come_back_whole(stores: Stores) {
    let log = stores.log();
    let mut odd: Headers = LOOK_ALIKES
        .iter()
        .map(|text| ((*text).to_owned(), (*text).to_owned()))
        .collect();
    odd.insert("empty".into(), String::new());
    odd.insert("blanks".into(), "  around  ".into());
    odd.insert("json".into(), r#"{"a":"b\n"}"#.into());
    let many = (0..32)
        .map(|n| (format!("x-{n}"), "v".repeat(1024)))
        .collect();
    for (number, headers) in [Headers::new(), odd, many].into_iter().enumerate() {
        let key = key(&format!("a-{number}"));
        let commit = commit(&key, 1, &format!("request-{number}"));
        assert_round_trip(&*log, Commit { headers, ..commit }).await;
    }
}
