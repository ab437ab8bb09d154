#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::Value;
use wow_kernel::error::{Bound, CommandError};

use super::*;
use crate::http::fixture;

const KEYS: [&str; 20] = [
    "id",
    "waitCommandId",
    "stage",
    "contextName",
    "aggregateName",
    "tenantId",
    "ownerId",
    "spaceId",
    "aggregateId",
    "aggregateVersion",
    "requestId",
    "commandId",
    "function",
    "errorCode",
    "errorMsg",
    "bindingErrors",
    "result",
    "signalTime",
    "succeeded",
    "duplicate",
];

fn json(result: &CommandResult) -> Value {
    serde_json::from_slice(&result_json(result, Uuid::nil())).unwrap()
}

#[test]
fn a_result_has_every_key_of_the_contract_and_no_other() {
    let mut failed = fixture::result();
    failed.aggregate_version = None;
    failed.error = Some(CommandError::Conflict);
    for result in [fixture::result(), failed] {
        let json = json(&result);
        let object = json.as_object().unwrap();
        assert_eq!(object.len(), KEYS.len());
        assert!(KEYS.iter().all(|key| object.contains_key(*key)), "{json}");
        let function = json["function"].as_object().unwrap();
        assert_eq!(function.len(), 4);
        for key in ["functionKind", "contextName", "processorName", "name"] {
            assert!(function.contains_key(key));
        }
    }
}

#[test]
fn a_result_that_went_well_says_so() {
    let json = json(&fixture::result());
    for (key, value) in [
        ("id", Value::from("00000000-0000-0000-0000-000000000000")),
        ("stage", "SNAPSHOT".into()),
        ("contextName", "example".into()),
        ("aggregateName", "account".into()),
        ("tenantId", "(0)".into()),
        ("ownerId", "".into()),
        ("aggregateVersion", 3.into()),
        ("errorCode", "Ok".into()),
        ("errorMsg", "".into()),
        ("bindingErrors", Value::Array(vec![])),
        ("result", Value::Object(serde_json::Map::new())),
        ("signalTime", 1_700_000_000_000_i64.into()),
        ("succeeded", true.into()),
        ("duplicate", false.into()),
    ] {
        assert_eq!(json[key], value, "{key}");
    }
    assert_eq!(json["function"]["functionKind"], "STATE_EVENT");
}

#[test]
fn a_failed_command_says_what_is_known_of_it() {
    let errors = vec![BindingError::new("amount", "must be positive")];
    let result = CommandResult {
        aggregate_version: None,
        error: Some(CommandError::Invalid { errors }),
        ..fixture::result()
    };
    let json = json(&result);
    assert_eq!(json["aggregateVersion"], Value::Null);
    assert_eq!(json["errorCode"], "wow.command.invalid");
    assert_eq!(
        json["errorMsg"],
        "the command is invalid: amount must be positive"
    );
    assert_eq!(json["bindingErrors"][0]["name"], "amount");
    assert_eq!(json["bindingErrors"][0]["msg"], "must be positive");
    assert_eq!(json["succeeded"], false);
    assert_eq!(json["requestId"], "r-1");
}

#[test]
fn numbers_of_a_result_map_come_out_byte_for_byte() {
    let map = r#"{"big":18446744073709551615,"exact":"0.10","float":1.10}"#;
    let raw: Arc<RawValue> = RawValue::from_string(map.to_owned()).unwrap().into();
    let result = CommandResult {
        result: Some(raw),
        ..fixture::result()
    };
    let text = String::from_utf8(result_json(&result, Uuid::nil())).unwrap();
    assert!(text.contains(&format!("\"result\":{map},")), "{text}");
}

#[test]
fn r31_a_busy_answer_says_when_to_come_back() {
    let error = CommandError::Busy {
        bound: Bound::LaneQueue,
    };
    let result = CommandResult {
        error: Some(error.clone()),
        ..fixture::result()
    };
    for response in [command_result(&result), refusal(&error.into())] {
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers().get("retry-after").unwrap(), "1");
        assert_eq!(
            response.headers().get("wow-error-code").unwrap(),
            "wow.command.busy"
        );
    }
}

#[test]
fn a_code_that_no_header_can_hold_is_made_to_fit() {
    assert_eq!(
        code_value("order.späte\nLieferung"),
        "order.sp_te_Lieferung"
    );
    assert_eq!(code_value("order.late"), "order.late");
}
