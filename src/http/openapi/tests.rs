#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use super::*;
use crate::http::fixture::registry;

fn openapi() -> Value {
    let registry = registry();
    let routes = RouteTable::new(&registry).unwrap();
    serde_json::from_slice(&document(&registry, &routes)).unwrap()
}

fn each_reference(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get("$ref") {
                found.push(target.clone());
            }
            object
                .values()
                .for_each(|value| each_reference(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| each_reference(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let openapi = openapi();
    let mut references = Vec::new();
    each_reference(&openapi, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(openapi.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn every_operation_has_an_id_of_its_own_and_describes_each_variable_of_its_path() {
    let openapi = openapi();
    let mut ids = HashSet::new();
    for (path, item) in openapi["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            assert!(ids.insert(id), "{verb} {path}");
            assert!(operation["responses"]["200"].is_object());
            let named = |parameter: &&Value| parameter["in"] == "path";
            let parameters = operation["parameters"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let described: Vec<_> = parameters
                .iter()
                .filter(named)
                .map(|parameter| format!("{{{}}}", parameter["name"].as_str().unwrap()))
                .collect();
            let in_path: Vec<_> = path
                .split('/')
                .filter(|part| part.starts_with('{'))
                .collect();
            assert_eq!(described, in_path, "{path}");
        }
    }
}

#[test]
fn commands_and_reads_are_described_from_their_declarations() {
    let openapi = openapi();
    assert_eq!(openapi["openapi"], "3.1.0");
    let paths = &openapi["paths"];
    let create = &paths["/account/create_account"]["post"];
    let schema = &create["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["$ref"], "#/components/schemas/CreateAccount");
    assert_eq!(create["requestBody"]["required"], true);
    let properties = &openapi["components"]["schemas"]["CreateAccount"]["properties"];
    assert!(properties["name"].is_object() && properties["balance"].is_object());
    assert_eq!(
        paths["/account/{id}/entry"].as_object().unwrap().len(),
        1,
        "PUT alone is shown"
    );
    assert_eq!(
        paths["/owner/{ownerId}/cart/view_cart"]["put"]["requestBody"]["required"],
        false
    );
    assert!(
        paths["/cart/view_cart"].is_null(),
        "the full path alone is shown"
    );
    assert!(paths["/account/{id}/state"]["get"].is_object());
    assert!(paths["/wow/command/send"]["post"].is_object());
    let busy = &openapi["components"]["responses"]["429"]["description"];
    assert_eq!(busy, "wow.command.busy");
}
