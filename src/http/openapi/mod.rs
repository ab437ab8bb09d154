//! `GET /v3/api-docs`: OpenAPI 3.1 of the public port, from the same declarations as its routes.
//! Its schemas are JSON Schema 2020-12, as OpenAPI 3.1 wants them.

mod components;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use wow_kernel::model::VariableSource;
use wow_kernel::registry::{AggregateDefinition, CommandDefinition, Registry};

use super::render;
use super::routes::{Endpoint, Parameter, ReadKind, Route, RouteTable};
use components::reference;

/// The document; it never changes while the node runs.
pub(super) fn document(registry: &Registry, routes: &RouteTable) -> Vec<u8> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for route in routes.routes().iter().filter(|route| route.canonical) {
        let Some(operation) = operation(route, &mut schemas) else {
            continue;
        };
        let item = paths.entry(route.path.clone()).or_insert_with(|| json!({}));
        item[route.verb.as_str().to_ascii_lowercase()] = operation;
    }
    let tags: Vec<_> = registry
        .aggregates()
        .iter()
        .map(|aggregate| json!({"name": aggregate.aggregate_type.as_str()}))
        .chain([json!({"name": "wow", "description": "the node itself"})])
        .collect();
    render::to_json(&json!({
        "openapi": "3.1.0",
        "info": {
            "title": &**registry.context(),
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Commands and reads of this context. A command is answered once the \
                stage it waits for is reached; trying it again with the same Command-Request-Id \
                never commits it twice.",
        },
        "tags": tags,
        "paths": paths,
        "components": components::all(schemas.take_definitions(true)),
        "security": [{}, {"bearer": []}],
    }))
}

fn operation(route: &Route, schemas: &mut SchemaGenerator) -> Option<Value> {
    let operation = match &route.endpoint {
        Endpoint::Command(aggregate, command) => {
            command_operation(route, aggregate, command, schemas)
        }
        Endpoint::Read(aggregate, kind) => read_operation(route, aggregate, *kind, schemas),
        Endpoint::Facade => json!({
            "operationId": "wow.command.send",
            "summary": "Send any command, named by headers",
            "tags": ["wow"],
            "parameters": components::facade_headers(),
            "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
            "responses": components::command_responses(),
        }),
        Endpoint::Metadata => json!({
            "operationId": "wow.metadata.get",
            "summary": "Types, commands, events, rules, and the table of error codes",
            "tags": ["wow"],
            "responses": components::responses(json!({"type": "object"})),
        }),
        Endpoint::GlobalId => json!({
            "operationId": "wow.id.global",
            "summary": "A new id",
            "tags": ["wow"],
            "responses": {"200": {
                "description": "An id",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }},
        }),
        Endpoint::Live | Endpoint::Ready => json!({
            "operationId": route.path.trim_start_matches('/').replace('/', "."),
            "summary": "The node's health",
            "tags": ["wow"],
            "responses": components::responses(json!({"type": "object"})),
        }),
        Endpoint::OpenApi | Endpoint::Page => return None,
    };
    Some(operation)
}

fn command_operation(
    route: &Route,
    aggregate: &AggregateDefinition,
    command: &CommandDefinition,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mut parameters = path_parameters(route);
    let headers = command.spec.variables.iter();
    for variable in headers.filter(|variable| variable.source == VariableSource::Header) {
        parameters.push(json!({
            "name": variable.name,
            "in": "header",
            "description": format!("fills the field '{}'", variable.field),
            "schema": {"type": "string"},
        }));
    }
    parameters.extend(components::command_headers());
    json!({
        "operationId": format!("{}.{}", aggregate.aggregate_type, command.name),
        "summary": &*command.name,
        "description": format!(
            "The aggregate {}. Who may send it: {:?}.",
            match command.spec.creation {
                wow_kernel::model::CreationRule::Creates => "must not exist yet",
                wow_kernel::model::CreationRule::Updates => "must exist",
                wow_kernel::model::CreationRule::Upserts => "may exist",
            },
            command.spec.access
        ),
        "tags": [aggregate.aggregate_type.as_str()],
        "parameters": parameters,
        "requestBody": {
            "required": command.spec.empty_body.is_none(),
            "content": {"application/json": {"schema": command.body_schema(schemas)}},
        },
        "responses": components::command_responses(),
    })
}

fn read_operation(
    route: &Route,
    aggregate: &AggregateDefinition,
    kind: ReadKind,
    schemas: &mut SchemaGenerator,
) -> Value {
    let state = json!(aggregate.state_schema(schemas));
    let with_state = |of: &str| {
        let state = json!({"type": "object", "properties": {"state": state.clone()}});
        json!({"allOf": [reference("schemas", of), state]})
    };
    let (name, summary, schema) = match kind {
        ReadKind::State => ("state", "The latest state", state),
        ReadKind::StateAtVersion => ("state_at_version", "The state at a version", state),
        ReadKind::StateAtTime => ("state_at_time", "The state at a time", state),
        ReadKind::Snapshot => (
            "snapshot",
            "The latest state with what the system knows",
            with_state("wow.Snapshot"),
        ),
        ReadKind::Commits => {
            let items = reference("schemas", "wow.Commit");
            (
                "commits",
                "Commits by version",
                json!({"type": "array", "items": items}),
            )
        }
        ReadKind::Tracing => {
            let items = with_state("wow.Commit");
            (
                "tracing",
                "Commits, and the state after each",
                json!({"type": "array", "items": items}),
            )
        }
    };
    let mut parameters = path_parameters(route);
    if kind == ReadKind::Tracing {
        for name in ["headVersion", "tailVersion", "limit"] {
            let schema = json!({"type": "integer", "minimum": 0});
            parameters.push(json!({"name": name, "in": "query", "schema": schema}));
        }
    }
    parameters.extend(components::identity_headers());
    json!({
        "operationId": format!("{}.{name}", aggregate.aggregate_type),
        "summary": summary,
        "tags": [aggregate.aggregate_type.as_str()],
        "parameters": parameters,
        "responses": components::responses(schema),
    })
}

fn path_parameters(route: &Route) -> Vec<Value> {
    let describe = |parameter: &Parameter| {
        let schema = match parameter {
            Parameter::Number(_) => json!({"type": "integer", "minimum": 0}),
            Parameter::Named(_) => json!({"type": "string"}),
            _ => json!({"type": "string", "minLength": 1, "maxLength": 128}),
        };
        json!({"name": parameter.name(), "in": "path", "required": true, "schema": schema})
    };
    route.parameters.iter().map(describe).collect()
}

#[cfg(test)]
mod tests;
