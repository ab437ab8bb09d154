//! What the operations of the OpenAPI document share: headers, answers, and their schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wow_kernel::wait::Stage;

use crate::http::error::TABLE;

/// Headers by their key among the components: name, meaning, schema.
type Header = (&'static str, &'static str, fn() -> Value);

fn id() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 128})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn stage() -> Value {
    json!({"type": "string", "enum": Stage::ALL.map(Stage::as_str)})
}

fn whole() -> Value {
    json!({"type": "integer", "minimum": 0})
}

const IDENTITY: &[Header] = &[
    ("Command-Tenant-Id", "the tenant", id),
    ("Command-Owner-Id", "the owner", id),
    ("Command-Space-Id", "the space", id),
    ("Command-Aggregate-Id", "the aggregate's id", id),
];

const COMMAND: &[Header] = &[
    (
        "Command-Request-Id",
        "names the request: trying again with it commits only once",
        id,
    ),
    (
        "Command-Aggregate-Version",
        "the version that the aggregate has to be at",
        whole,
    ),
    (
        "Command-Wait-Stage",
        "the stage to wait for; SNAPSHOT unless given",
        stage,
    ),
    (
        "Command-Wait-Timeout",
        "how long to wait, in milliseconds",
        whole,
    ),
    (
        "Command-Wait-Context",
        "the context of the subscription to wait for",
        text,
    ),
    (
        "Command-Wait-Processor",
        "the subscription to wait for",
        text,
    ),
    ("Command-Wait-Function", "its function", text),
    (
        "Command-Wait-Tail-Stage",
        "the stage that a saga's own commands have to reach",
        stage,
    ),
    (
        "Command-Wait-Tail-Context",
        "the context of the tail's subscription",
        text,
    ),
    (
        "Command-Wait-Tail-Processor",
        "the tail's subscription",
        text,
    ),
    ("Command-Wait-Tail-Function", "its function", text),
    (
        "Command-Local-First",
        "'false': not here while the aggregate's owner is reachable",
        text,
    ),
];

const FACADE: &[Header] = &[
    ("Command-Type", "the command's name", text),
    (
        "Command-Aggregate-Context",
        "the context of its aggregate",
        text,
    ),
    (
        "Command-Aggregate-Name",
        "its aggregate, where several have such a command",
        text,
    ),
];

/// A reference to a component.
pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

fn references(headers: &[&[Header]]) -> Vec<Value> {
    let all = headers.iter().flat_map(|headers| headers.iter());
    all.map(|(name, ..)| reference("parameters", name))
        .collect()
}

/// The headers of a read.
pub(super) fn identity_headers() -> Vec<Value> {
    references(&[IDENTITY])
}

/// The headers of a command on its own route.
pub(super) fn command_headers() -> Vec<Value> {
    references(&[IDENTITY, COMMAND])
}

/// The headers of a command sent to the facade.
pub(super) fn facade_headers() -> Vec<Value> {
    references(&[FACADE, IDENTITY, COMMAND])
}

/// The answers to a command.
pub(super) fn command_responses() -> Value {
    let schema = reference("schemas", "wow.CommandResult");
    let mut all = responses(schema.clone());
    all["200"]["content"]["text/event-stream"] = json!({"schema": schema});
    all
}

/// The answers to a request whose success has this schema.
pub(super) fn responses(schema: Value) -> Value {
    let mut all = Map::new();
    let success = json!({
        "description": "Ok",
        "headers": {"Wow-Error-Code": reference("headers", "Wow-Error-Code")},
        "content": {"application/json": {"schema": schema}},
    });
    all.insert("200".to_owned(), success);
    for status in codes_by_status().into_keys() {
        all.insert(
            status.to_string(),
            reference("responses", &status.to_string()),
        );
    }
    Value::Object(all)
}

fn codes_by_status() -> BTreeMap<u16, Vec<&'static str>> {
    let mut codes: BTreeMap<u16, Vec<_>> = BTreeMap::new();
    for row in TABLE {
        codes.entry(row.status).or_default().push(row.code);
    }
    codes
}

/// All components.
pub(super) fn all(mut schemas: Map<String, Value>) -> Value {
    schemas.extend(own_schemas());
    let mut parameters = Map::new();
    for (name, description, schema) in [IDENTITY, COMMAND, FACADE].into_iter().flatten() {
        let parameter = json!({
            "name": name,
            "in": "header",
            "description": description,
            "required": *name == "Command-Type",
            "schema": schema(),
        });
        parameters.insert((*name).to_owned(), parameter);
    }
    let failures: Map<String, Value> = codes_by_status()
        .into_iter()
        .map(|(status, codes)| {
            let response = json!({
                "description": codes.join(", "),
                "headers": {"Wow-Error-Code": reference("headers", "Wow-Error-Code")},
                "content": {"application/json": {"schema": reference("schemas", "wow.Failure")}},
            });
            (status.to_string(), response)
        })
        .collect();
    let code = json!({"description": "'Ok', or the error's code", "schema": {"type": "string"}});
    json!({
        "schemas": schemas,
        "parameters": parameters,
        "responses": failures,
        "headers": {"Wow-Error-Code": code},
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
    })
}

fn object(properties: Value) -> Value {
    let names = properties
        .as_object()
        .map(|all| all.keys().cloned().collect::<Vec<_>>());
    json!({"type": "object", "properties": properties, "required": names})
}

fn own_schemas() -> Map<String, Value> {
    let mut all = Map::new();
    let binding = object(json!({"name": text(), "msg": text()}));
    let failure = object(json!({
        "errorCode": text(),
        "errorMsg": text(),
        "bindingErrors": {"type": "array", "items": binding.clone()},
        "succeeded": {"type": "boolean"},
    }));
    all.insert("wow.Failure".to_owned(), failure);
    let function = object(json!({
        "functionKind": text(), "contextName": text(), "processorName": text(), "name": text(),
    }));
    let result = object(json!({
        "id": text(), "waitCommandId": text(), "stage": stage(), "contextName": text(),
        "aggregateName": text(), "tenantId": text(), "ownerId": text(), "spaceId": text(),
        "aggregateId": text(), "aggregateVersion": {"type": ["integer", "null"]},
        "requestId": text(), "commandId": text(), "function": function, "errorCode": text(),
        "errorMsg": text(), "bindingErrors": {"type": "array", "items": binding},
        "result": {"type": "object"}, "signalTime": whole(), "succeeded": {"type": "boolean"},
        "duplicate": {"type": "boolean"},
    }));
    all.insert("wow.CommandResult".to_owned(), result);
    let tags = json!({
        "type": "object",
        "additionalProperties": {"type": "array", "items": text()},
    });
    let snapshot = object(json!({
        "contextName": text(), "aggregateName": text(), "tenantId": text(), "ownerId": text(),
        "spaceId": text(), "aggregateId": text(), "version": whole(),
        "eventId": {"type": ["string", "null"]}, "firstOperator": text(), "operator": text(),
        "firstEventTime": whole(), "eventTime": whole(), "state": {}, "snapshotTime": whole(),
        "tags": tags, "deleted": {"type": "boolean"},
    }));
    all.insert("wow.Snapshot".to_owned(), snapshot);
    let event = object(json!({
        "id": text(), "name": text(), "revision": text(), "bodyType": text(), "body": {},
    }));
    let header = json!({"type": "object", "additionalProperties": text()});
    let commit = object(json!({
        "id": text(), "contextName": text(), "aggregateName": text(), "aggregateId": text(),
        "tenantId": text(), "ownerId": text(), "spaceId": text(), "commandId": text(),
        "requestId": text(), "version": whole(), "header": header,
        "body": {"type": "array", "items": event}, "createTime": whole(),
    }));
    all.insert("wow.Commit".to_owned(), commit);
    all
}
