//! The routes of the public port, made from the registry (spec/03).
//!
//! Every path and verb is known before the node starts, and no request can mean two of them:
//! a registry whose routes could is refused, with both routes named.

mod declare;
mod pattern;
mod tree;

use std::collections::HashSet;
use std::sync::Arc;

use wow_kernel::registry::{AggregateDefinition, CommandDefinition, Registry};

use pattern::{Overlap, Segment, overlap};
pub use pattern::{Parameter, Verb};
pub(super) use tree::Found;
use tree::Tree;

/// What answers a route.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A command of a type.
    Command(Arc<AggregateDefinition>, Arc<CommandDefinition>),
    /// A read of a type.
    Read(Arc<AggregateDefinition>, ReadKind),
    /// Any command, named by header.
    Facade,
    /// What the node knows.
    Metadata,
    /// A new id.
    GlobalId,
    /// The OpenAPI document.
    OpenApi,
    /// The page to try it.
    Page,
    /// Whether the process lives.
    Live,
    /// Whether it runs what it owns.
    Ready,
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// The latest state.
    State,
    /// The state at a version.
    StateAtVersion,
    /// The state at a time.
    StateAtTime,
    /// Commits with the state after each.
    Tracing,
    /// The snapshot.
    Snapshot,
    /// Commits.
    Commits,
}

/// One route.
#[derive(Debug, Clone)]
pub struct Route {
    /// Its verb.
    pub verb: Verb,
    /// Its path, variables in braces.
    pub path: String,
    /// Its variables, in order.
    pub parameters: Vec<Parameter>,
    /// What answers it.
    pub endpoint: Endpoint,
    /// Whether it is the one that documents show, with every part of the path.
    pub canonical: bool,
    /// Whether it is the POST that a declared PUT or PATCH accepts too.
    pub implied: bool,
    segments: Vec<Segment>,
}

impl Route {
    /// What declares it: all the forms of one route have one origin.
    fn origin(&self) -> String {
        match &self.endpoint {
            Endpoint::Command(aggregate, command) => {
                format!(
                    "command '{}' of '{}'",
                    command.name, aggregate.aggregate_type
                )
            }
            Endpoint::Read(aggregate, kind) => {
                format!("read {kind:?} of '{}'", aggregate.aggregate_type)
            }
            _ => "the node's own".to_owned(),
        }
    }

    fn name(&self) -> String {
        format!("{} {} ({})", self.verb, self.path, self.origin())
    }

    /// Whether a request could mean either of two routes.
    ///
    /// A PUT that also accepts POST gives way to a declared POST with a more literal path.
    fn clashes_with(&self, other: &Self) -> bool {
        self.verb == other.verb
            && match overlap(&self.segments, &other.segments) {
                Overlap::None => false,
                Overlap::Same | Overlap::Crossed => true,
                Overlap::Narrower => self.implied || !other.implied,
                Overlap::Wider => !self.implied || other.implied,
            }
    }
}

/// Why no routes can be made of a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// One request could mean two routes.
    #[error(
        "one request could mean {one} and {other}; give one of them another action or resource"
    )]
    Ambiguous {
        /// The one.
        one: String,
        /// The other.
        other: String,
    },
    /// A declared resource or action makes no path.
    #[error("{of} can't have a route: {fault}")]
    Declaration {
        /// Whose it is.
        of: String,
        /// What is wrong.
        fault: String,
    },
}

/// Every route of the public port.
#[derive(Debug)]
pub struct RouteTable {
    routes: Vec<Route>,
    tree: Tree,
}

impl RouteTable {
    /// Makes the routes of every type, and those that the node always has.
    ///
    /// # Errors
    /// Every declaration that makes no path, and every pair that one request could mean.
    pub fn new(registry: &Registry) -> Result<Self, Vec<RouteError>> {
        let mut errors = Vec::new();
        let mut routes = declare::fixed();
        for aggregate in registry.aggregates() {
            routes.extend(declare::of_aggregate(aggregate, &mut errors));
        }
        let mut reported = HashSet::new();
        for (index, route) in routes.iter().enumerate() {
            for earlier in routes[..index]
                .iter()
                .filter(|earlier| route.clashes_with(earlier))
            {
                if reported.insert((earlier.origin(), route.origin())) {
                    errors.push(RouteError::Ambiguous {
                        one: earlier.name(),
                        other: route.name(),
                    });
                }
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut tree = Tree::default();
        for (index, route) in routes.iter().enumerate() {
            tree.add(&route.segments, route.verb, index);
        }
        Ok(Self { routes, tree })
    }

    /// Every route.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Finds the route of a request, by its path as it stands there.
    pub(super) fn find<'p>(&self, path: &'p str, verb: Option<Verb>) -> Found<'p, &Route> {
        match self.tree.find(path, verb) {
            Found::Route(index, values) => Found::Route(&self.routes[index], values),
            Found::WrongVerb(verbs) => Found::WrongVerb(verbs),
            Found::Nothing => Found::Nothing,
            Found::Unreadable => Found::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests;
