//! Which routes a type has (spec/03): every command, every read, each with and without the
//! optional parts of its path.

use std::sync::Arc;

use wow_kernel::model::{CommandSpec, CreationRule, OwnerPolicy, VariableSource};
use wow_kernel::registry::{AggregateDefinition, CommandDefinition};

use super::pattern::{Parameter, Segment, Verb, template};
use super::{Endpoint, ReadKind, Route, RouteError};

/// The routes that no type brings.
pub(super) fn fixed() -> Vec<Route> {
    let file = Segment::Parameter(Parameter::Named("file".to_owned()));
    let page = vec![Segment::literal("swagger-ui"), file];
    let route = |verb, path: &str, endpoint| {
        let segments = path.split('/').map(Segment::literal).collect();
        Route::new(verb, segments, endpoint)
    };
    vec![
        route(Verb::Post, "wow/command/send", Endpoint::Facade),
        route(Verb::Get, "wow/metadata", Endpoint::Metadata),
        route(Verb::Get, "wow/id/global", Endpoint::GlobalId),
        route(Verb::Get, "v3/api-docs", Endpoint::OpenApi),
        route(Verb::Get, "swagger-ui", Endpoint::Page),
        Route::new(Verb::Get, page, Endpoint::Page),
        route(Verb::Get, "health/live", Endpoint::Live),
        route(Verb::Get, "health/ready", Endpoint::Ready),
    ]
}

/// The routes of a type.
pub(super) fn of_aggregate(
    aggregate: &Arc<AggregateDefinition>,
    errors: &mut Vec<RouteError>,
) -> Vec<Route> {
    let resource = match Segment::parse_all(aggregate.spec.resource) {
        Ok(resource) if !resource.is_empty() => resource,
        Ok(_) => {
            return refuse(
                aggregate,
                None,
                "it has an empty resource".to_owned(),
                errors,
            );
        }
        Err(fault) => return refuse(aggregate, None, fault, errors),
    };
    let prefixes = prefixes(aggregate);
    let mut routes = Vec::new();
    for command in &aggregate.commands {
        match action(&command.spec) {
            Ok(action) => {
                command_routes(
                    &mut routes,
                    &prefixes,
                    &resource,
                    &action,
                    aggregate,
                    command,
                );
            }
            Err(fault) => {
                refuse(aggregate, Some(command), fault, errors);
            }
        }
    }
    read_routes(&mut routes, &prefixes, &resource, aggregate);
    routes
}

fn refuse(
    aggregate: &AggregateDefinition,
    command: Option<&CommandDefinition>,
    fault: String,
    errors: &mut Vec<RouteError>,
) -> Vec<Route> {
    let of = match command {
        Some(command) => format!("command '{}' of '{}'", command.name, aggregate.spec.name),
        None => format!("aggregate '{}'", aggregate.spec.name),
    };
    errors.push(RouteError::Declaration { of, fault });
    Vec::new()
}

/// What may stand before the resource, the whole of it first.
///
/// Tenant and owner may come by header or token instead, so each may be left out.
fn prefixes(aggregate: &AggregateDefinition) -> Vec<Vec<Segment>> {
    let context = aggregate
        .is_foreign
        .then(|| Segment::literal(&*aggregate.context));
    let tenant = aggregate
        .spec
        .static_tenant
        .is_none()
        .then_some(Parameter::Tenant);
    let owner = (aggregate.spec.owner != OwnerPolicy::Never).then_some(Parameter::Owner);
    let mut all: Vec<Vec<Segment>> = vec![context.into_iter().collect()];
    for (name, parameter) in [("tenant", tenant), ("owner", owner)] {
        let Some(parameter) = parameter else { continue };
        let with = |prefix: &Vec<Segment>| {
            let part = [
                Segment::literal(name),
                Segment::Parameter(parameter.clone()),
            ];
            prefix.iter().cloned().chain(part).collect::<Vec<_>>()
        };
        let longer: Vec<_> = all.iter().map(with).collect();
        all = longer.into_iter().chain(all).collect();
    }
    all.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
    all
}

/// The action's segments, and that each variable in it is declared and the other way round.
fn action(spec: &CommandSpec) -> Result<Vec<Segment>, String> {
    let action = Segment::parse_all(spec.route.action)?;
    let in_path = |name: &str| {
        action.iter().any(|segment| match segment {
            Segment::Parameter(parameter) => parameter.name() == name,
            Segment::Literal(_) => false,
        })
    };
    let declared = || {
        let variables = spec.variables.iter();
        variables.filter(|variable| variable.source == VariableSource::Path)
    };
    for segment in &action {
        if let Segment::Parameter(Parameter::Named(name)) = segment
            && !declared().any(|variable| variable.name == name)
        {
            return Err(format!(
                "its path has {{{name}}}, which is no variable of it"
            ));
        }
    }
    for variable in declared() {
        let is_fact = ["id", "tenantId", "ownerId", "spaceId"].contains(&variable.name);
        if !is_fact && !in_path(variable.name) {
            return Err(format!(
                "its variable '{}' is missing in its path",
                variable.name
            ));
        }
    }
    Ok(action)
}

fn command_routes(
    routes: &mut Vec<Route>,
    prefixes: &[Vec<Segment>],
    resource: &[Segment],
    action: &[Segment],
    aggregate: &Arc<AggregateDefinition>,
    command: &Arc<CommandDefinition>,
) {
    let verb = Verb::from(command.spec.route.method);
    // v8 clients post to what is declared PUT or PATCH.
    let also_post = matches!(verb, Verb::Put | Verb::Patch) && !command.spec.builtin;
    let ids = id_segments(aggregate, command, action);
    for (position, (prefix, id)) in prefixes
        .iter()
        .flat_map(|prefix| ids.iter().map(move |id| (prefix, id)))
        .enumerate()
    {
        let segments: Vec<_> = prefix
            .iter()
            .chain(resource)
            .chain(id.iter())
            .chain(action)
            .cloned()
            .collect();
        let endpoint = Endpoint::Command(aggregate.clone(), command.clone());
        let route = Route::new(verb, segments, endpoint);
        let route = Route {
            canonical: position == 0,
            ..route
        };
        if also_post {
            let post = Route {
                verb: Verb::Post,
                implied: true,
                canonical: false,
                ..route.clone()
            };
            routes.push(post);
        }
        routes.push(route);
    }
}

/// The ways in which a command's path names the aggregate, the usual one first.
fn id_segments(
    aggregate: &AggregateDefinition,
    command: &CommandDefinition,
    action: &[Segment],
) -> Vec<Option<Segment>> {
    let id = Segment::Parameter(Parameter::Id);
    let creates = command.spec.creation == CreationRule::Creates;
    if aggregate.owner_is_id() || creates || action.contains(&id) {
        return vec![None];
    }
    match command.spec.id_field {
        // The body names it, so the path need not.
        Some(_) => vec![None, Some(id)],
        None => vec![Some(id)],
    }
}

fn read_routes(
    routes: &mut Vec<Route>,
    prefixes: &[Vec<Segment>],
    resource: &[Segment],
    aggregate: &Arc<AggregateDefinition>,
) {
    let number = |name| Segment::Parameter(Parameter::Number(name));
    let state = || Segment::literal("state");
    let reads = [
        (ReadKind::State, vec![state()]),
        (ReadKind::StateAtVersion, vec![state(), number("version")]),
        (
            ReadKind::StateAtTime,
            vec![state(), Segment::literal("time"), number("createTime")],
        ),
        (
            ReadKind::Tracing,
            vec![state(), Segment::literal("tracing")],
        ),
        (ReadKind::Snapshot, vec![Segment::literal("snapshot")]),
        (
            ReadKind::Commits,
            vec![
                Segment::literal("event"),
                number("headVersion"),
                number("tailVersion"),
            ],
        ),
    ];
    let id = (!aggregate.owner_is_id()).then_some(Segment::Parameter(Parameter::Id));
    for (kind, suffix) in reads {
        for (position, prefix) in prefixes.iter().enumerate() {
            let segments = prefix
                .iter()
                .chain(resource)
                .chain(id.iter())
                .chain(&suffix)
                .cloned()
                .collect();
            let route = Route::new(Verb::Get, segments, Endpoint::Read(aggregate.clone(), kind));
            routes.push(Route {
                canonical: position == 0,
                ..route
            });
        }
    }
}

impl Route {
    fn new(verb: Verb, segments: Vec<Segment>, endpoint: Endpoint) -> Self {
        let parameters = segments.iter().filter_map(|segment| match segment {
            Segment::Parameter(parameter) => Some(parameter.clone()),
            Segment::Literal(_) => None,
        });
        Self {
            verb,
            path: template(&segments),
            parameters: parameters.collect(),
            endpoint,
            canonical: true,
            implied: false,
            segments,
        }
    }
}
