//! `GET /wow/metadata`: what this node knows, from the same declarations that make its routes:
//! types, commands, events, rules, sagas, and the table of error codes.

use serde_json::{Map, Value, json};
use wow_kernel::model::{CommandSpec, CreationRule, OwnerPolicy, Purity, VariableSource};
use wow_kernel::registry::{AggregateDefinition, BUILTIN_EVENTS, CommandDefinition, Registry};
use wow_kernel::wait::Stage;

use super::error::TABLE;
use super::render;
use super::routes::{Endpoint, Route, RouteTable};

/// The document; it never changes while the node runs.
pub(super) fn document(registry: &Registry, routes: &RouteTable) -> Vec<u8> {
    let aggregates: Vec<_> = registry
        .aggregates()
        .iter()
        .map(|definition| aggregate(definition, routes))
        .collect();
    let sagas: Vec<_> = registry
        .sagas()
        .iter()
        .map(|saga| {
            json!({
                "name": saga.name,
                "aggregate": saga.aggregate_type.as_str(),
                "stage": Stage::SagaHandled.as_str(),
            })
        })
        .collect();
    render::to_json(&json!({
        "context": &**registry.context(),
        "version": env!("CARGO_PKG_VERSION"),
        "aggregates": aggregates,
        "sagas": sagas,
        "stages": Stage::ALL.map(Stage::as_str),
        "errors": TABLE,
    }))
}

fn aggregate(definition: &AggregateDefinition, routes: &RouteTable) -> Value {
    let spec = &definition.spec;
    let commands: Vec<_> = definition
        .commands
        .iter()
        .map(|found| command(definition, found, routes))
        .collect();
    let events = definition.events.iter().map(|event| {
        json!({
            "name": event.name,
            "aliases": event.aliases,
            "revision": event.revision,
            "builtin": false,
        })
    });
    let builtin = BUILTIN_EVENTS
        .iter()
        .map(|name| json!({"name": name, "aliases": [], "revision": 1, "builtin": true}));
    let reads = of(routes, definition, |endpoint| {
        matches!(endpoint, Endpoint::Read(..))
    });
    json!({
        "name": spec.name,
        "type": definition.aggregate_type.as_str(),
        "context": &*definition.context,
        "resource": spec.resource,
        "staticTenant": spec.static_tenant,
        "owner": match spec.owner {
            OwnerPolicy::Never => "never",
            OwnerPolicy::Always => "always",
            OwnerPolicy::AggregateId => "aggregate_id",
        },
        "stateRevision": spec.state_revision,
        "readAccess": format!("{:?}", spec.read_access),
        "commands": commands,
        "events": events.chain(builtin).collect::<Vec<_>>(),
        "reads": reads,
    })
}

fn command(
    aggregate: &AggregateDefinition,
    definition: &CommandDefinition,
    routes: &RouteTable,
) -> Value {
    let spec: &CommandSpec = &definition.spec;
    let is_this = |endpoint: &Endpoint| match endpoint {
        Endpoint::Command(_, command) => command.name == definition.name,
        _ => false,
    };
    let variables: Map<String, Value> = spec
        .variables
        .iter()
        .map(|variable| {
            let source = match variable.source {
                VariableSource::Path => "path",
                VariableSource::Header => "header",
            };
            (
                variable.field.to_owned(),
                json!({"from": source, "name": variable.name}),
            )
        })
        .collect();
    json!({
        "name": &*definition.name,
        "creation": match spec.creation {
            CreationRule::Creates => "creates",
            CreationRule::Updates => "updates",
            CreationRule::Upserts => "upserts",
        },
        "access": format!("{:?}", spec.access),
        "pure": spec.purity == Purity::Pure,
        "blocking": spec.blocking,
        "recovers": spec.recovers,
        "strict": spec.strict,
        "idField": spec.id_field,
        "variables": variables,
        "emptyBody": spec.empty_body.is_some(),
        "builtin": spec.builtin,
        "routes": of(routes, aggregate, is_this),
    })
}

/// The routes of a type that answer what is asked for.
fn of(
    routes: &RouteTable,
    aggregate: &AggregateDefinition,
    wanted: impl Fn(&Endpoint) -> bool,
) -> Vec<Value> {
    let ours = |route: &&Route| match &route.endpoint {
        Endpoint::Command(of, _) | Endpoint::Read(of, _) => {
            of.aggregate_type == aggregate.aggregate_type && wanted(&route.endpoint)
        }
        _ => false,
    };
    routes
        .routes()
        .iter()
        .filter(ours)
        .map(|route| {
            json!({
                "method": route.verb.as_str(),
                "path": route.path,
                "canonical": route.canonical,
            })
        })
        .collect()
}
