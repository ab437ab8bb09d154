//! What goes in comes out, byte for byte, and is told apart by its bytes.

use std::sync::Arc;

use serde_json::value::RawValue;
use wow_kernel::commit::RecordedEvent;
use wow_kernel::id::{AggregateId, AggregateKey};
use wow_kernel::ports::CommitLog;

use super::databases::{Database, on_every_database, on_every_server};
use super::support::{commit, key, open};

async fn r3_ids_are_compared_byte_for_byte(database: Database) {
    let storage = open(database.settings()).await.unwrap();
    let longest = "x".repeat(128);
    let wide = "\u{1f600}".repeat(128);
    // Blanks at an end are no ids by R3; what storage is handed, it tells apart all the same.
    let ids = [
        "a", "A", "a ", "a  ", "\u{e9}", "e\u{301}", "", &*longest, &*wide,
    ];
    for (number, id) in ids.iter().enumerate() {
        let request = format!("{}{id}", number % 2);
        let request: String = request.chars().take(128).collect();
        let appended = storage.append(commit(id, 1, &request)).await;
        assert!(appended.is_ok(), "{id:?}: {appended:?}");
    }
    for id in ids {
        let aggregate = AggregateKey {
            id: AggregateId::trusted(id),
            ..key("")
        };
        let found = storage.read_aggregate(&aggregate, 0, u64::MAX, 10).await;
        let found = found.unwrap();
        let [found] = &found[..] else {
            panic!("{id:?} has {} commits", found.len());
        };
        assert_eq!(found.key, aggregate);
    }
    storage.close().await;
}

async fn events_and_results_come_back_byte_for_byte(database: Database) {
    let storage = open(database.settings()).await.unwrap();
    let texts = [
        r#"{"n":1.0,"big":123456789012345678901234567890,"e":1E+2,"z":-0}"#,
        r#"{ "spaced" : [ 1,2 ] , "a":1,"a":2}"#,
        r#""\u0000\u00e9\ud83d\ude00 \\ \" \/ \n""#,
        "\"\u{e9}\u{1f600}\u{2028} '' ; -- % _ ? $1 :x\"",
    ];
    for (version, text) in (1..).zip(texts) {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let mut commit = Arc::unwrap_or_clone(commit("a", version, &format!("a-{version}")));
        commit.events = Arc::from([RecordedEvent {
            name: Arc::from("deposited"),
            revision: 1,
            body: raw.clone(),
        }]);
        commit.result = Some(Arc::from(raw));
        storage.append(Arc::new(commit)).await.unwrap();
    }
    let found = storage
        .read_aggregate(&key("a"), 0, u64::MAX, 10)
        .await
        .unwrap();
    for (commit, text) in found.iter().zip(texts) {
        assert_eq!(commit.events[0].body.get(), text);
        assert_eq!(commit.result.as_ref().unwrap().get(), text);
    }
    assert_eq!(found.len(), texts.len());
    storage.close().await;
}

on_every_database!(
    r3_ids_are_compared_byte_for_byte,
    events_and_results_come_back_byte_for_byte,
);
