//! Every aggregate and command type a node knows, with the types erased.
//!
//! The registry is built once, before the node starts, and refuses what doesn't fit together.
//! Everything that asks "which types are there" asks here: admission, routes, metadata, OpenAPI.

mod aggregate;
mod builtin;
mod command;
mod saga;

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

pub use aggregate::{AggregateDefinition, CommandSet, ErasedState};
#[cfg(any(test, feature = "testkit"))]
pub(crate) use builtin::DELETED;
pub use builtin::{BUILTIN_EVENTS, SystemEvent};
pub use command::{BodyFault, CommandDefinition, DecideFault, DecideOutcome, Decided, TransformFn};
pub use saga::SagaDefinition;

use crate::error::CommandError;
use crate::id::AggregateType;
use crate::model::{Aggregate, Command, Rejection, Saga};
use crate::saga::NAMES_BYTES_MAX;
use crate::submission::Target;

/// What doesn't fit together in a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two aggregate types of one name or resource.
    #[error("two aggregate types are called '{0}'")]
    AggregateTwice(String),
    /// Two commands of one name in one type.
    #[error("aggregate '{aggregate}' has two commands called '{command}'")]
    CommandTwice {
        /// The aggregate.
        aggregate: String,
        /// The command.
        command: String,
    },
    /// An event name that the system uses itself, or that is used twice.
    #[error("aggregate '{aggregate}' can't have an event called '{event}': the name is taken")]
    EventName {
        /// The aggregate.
        aggregate: String,
        /// The event.
        event: String,
    },
    /// A transformer for a command that no aggregate has.
    #[error("a transformer is registered for {0}, which no registered aggregate has")]
    TransformerWithoutCommand(&'static str),
    /// Two sagas of one name, a name that is too long, or a type that isn't registered.
    #[error("saga '{name}': {reason}")]
    Saga {
        /// The saga.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Collects types for a [`Registry`].
#[derive(Default)]
pub struct RegistryBuilder {
    context: String,
    aggregates: Vec<AggregateDefinition>,
    transformers: Vec<(TypeId, &'static str, TransformFn)>,
    sagas: Vec<SagaDefinition>,
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryBuilder")
            .field("aggregates", &self.aggregates)
            .field("sagas", &self.sagas)
            .finish_non_exhaustive()
    }
}

impl RegistryBuilder {
    /// Collects for the service's context.
    pub fn new(context: impl Into<String>) -> Self {
        Self {
            context: context.into(),
            ..Self::default()
        }
    }

    /// Adds an aggregate type with its commands, and the built-in ones.
    #[must_use]
    pub fn register<A: Aggregate>(mut self) -> Self {
        self.aggregates
            .push(AggregateDefinition::of::<A>(&self.context));
        self
    }

    /// Adds a transformer for a command type; those of one type run in the order added (R6).
    #[must_use]
    pub fn transform<C: Command + Clone>(
        mut self,
        transform: impl Fn(C, &crate::admission::TransformContext<'_>) -> Result<C, Rejection>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let name = std::any::type_name::<C>();
        self.transformers.push((
            TypeId::of::<C>(),
            name,
            command::erase_transformer(transform),
        ));
        self
    }

    /// Adds a saga.
    #[must_use]
    pub fn saga<S: Saga>(mut self, saga: S) -> Self {
        self.sagas.push(SagaDefinition::of(saga));
        self
    }

    /// Builds the registry.
    ///
    /// # Errors
    /// Everything that doesn't fit together, not only the first.
    pub fn build(self) -> Result<Registry, Vec<RegistryError>> {
        let mut errors = Vec::new();
        let mut registry = Registry {
            context: Arc::from(self.context),
            aggregates: Vec::new(),
            by_type: HashMap::default(),
            by_payload: HashMap::default(),
            sagas: Vec::new(),
        };
        let mut transformers = self.transformers;
        for mut aggregate in self.aggregates {
            aggregate.check(&mut errors);
            aggregate.take_transformers(&mut transformers);
            registry.add(aggregate, &mut errors);
        }
        for (_, name, _) in transformers {
            errors.push(RegistryError::TransformerWithoutCommand(name));
        }
        for saga in self.sagas {
            registry.add_saga(saga, &mut errors);
        }
        if errors.is_empty() {
            Ok(registry)
        } else {
            Err(errors)
        }
    }
}

/// Looked up for every command.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Every type the node knows.
#[derive(Debug)]
pub struct Registry {
    context: Arc<str>,
    aggregates: Vec<Arc<AggregateDefinition>>,
    by_type: HashMap<AggregateType, usize>,
    by_payload: HashMap<TypeId, Vec<(usize, usize)>>,
    sagas: Vec<Arc<SagaDefinition>>,
}

/// A command type with the aggregate type it belongs to.
pub type Resolved = (Arc<AggregateDefinition>, Arc<CommandDefinition>);

impl Registry {
    /// The service's context.
    pub fn context(&self) -> &Arc<str> {
        &self.context
    }

    /// Every aggregate type, in the order registered.
    pub fn aggregates(&self) -> &[Arc<AggregateDefinition>] {
        &self.aggregates
    }

    /// Every saga.
    pub fn sagas(&self) -> &[Arc<SagaDefinition>] {
        &self.sagas
    }

    /// An aggregate type by its name in the log.
    pub fn aggregate(&self, aggregate_type: &AggregateType) -> Option<&Arc<AggregateDefinition>> {
        self.by_type
            .get(aggregate_type)
            .map(|index| &self.aggregates[*index])
    }

    /// Finds the command type that a request names (R2).
    ///
    /// # Errors
    /// [`CommandError::TypeUnknown`], also where the names fit several types.
    pub fn resolve(&self, target: &Target) -> Result<Resolved, CommandError> {
        match target {
            Target::Typed(payload_type) => {
                let found = self.by_payload.get(payload_type);
                let found = found.map_or(&[][..], Vec::as_slice);
                let resolved = |(aggregate, command): &(usize, usize)| {
                    let aggregate = &self.aggregates[*aggregate];
                    (aggregate.clone(), aggregate.commands[*command].clone())
                };
                match found {
                    [one] => Ok(resolved(one)),
                    several => only(several.iter().map(resolved), || {
                        "this Rust type of command".to_owned()
                    }),
                }
            }
            Target::Named {
                context,
                aggregate,
                command,
            } => {
                let of_type = |definition: &&Arc<AggregateDefinition>| {
                    context
                        .as_deref()
                        .is_none_or(|name| *name == *definition.context)
                        && aggregate
                            .as_deref()
                            .is_none_or(|name| name == definition.spec.name)
                };
                let all = self
                    .aggregates
                    .iter()
                    .filter(of_type)
                    .filter_map(|definition| {
                        let command = definition.command(command)?;
                        Some((definition.clone(), command.clone()))
                    });
                only(all, || match aggregate {
                    Some(aggregate) => format!("command '{command}' of aggregate '{aggregate}'"),
                    None => format!("command '{command}'"),
                })
            }
        }
    }

    fn add(&mut self, aggregate: AggregateDefinition, errors: &mut Vec<RegistryError>) {
        let index = self.aggregates.len();
        let same_resource = self.aggregates.iter().any(|known| {
            known.context == aggregate.context && known.spec.resource == aggregate.spec.resource
        });
        if same_resource {
            errors.push(RegistryError::AggregateTwice(
                aggregate.spec.resource.to_owned(),
            ));
        }
        if self
            .by_type
            .insert(aggregate.aggregate_type.clone(), index)
            .is_some()
        {
            errors.push(RegistryError::AggregateTwice(
                aggregate.spec.name.to_owned(),
            ));
        }
        for (position, command) in aggregate.commands.iter().enumerate() {
            self.by_payload
                .entry(command.payload_type)
                .or_default()
                .push((index, position));
        }
        self.aggregates.push(Arc::new(aggregate));
    }

    fn add_saga(&mut self, saga: SagaDefinition, errors: &mut Vec<RegistryError>) {
        let fault = if saga.name.is_empty() || saga.name.len() > 48 {
            Some("a name has 1 to 48 characters".to_owned())
        } else if self.context.len() + saga.name.len() > NAMES_BYTES_MAX {
            Some(format!(
                "with the context's name it has at most {NAMES_BYTES_MAX} characters"
            ))
        } else if saga.name.contains(':') {
            Some("a name has no ':'".to_owned())
        } else if self.sagas.iter().any(|known| known.name == saga.name) {
            Some("another saga has this name".to_owned())
        } else {
            None
        };
        if let Some(reason) = fault {
            errors.push(RegistryError::Saga {
                name: saga.name.to_owned(),
                reason,
            });
        }
        let follows = |known: &&Arc<AggregateDefinition>| known.state_type() == saga.state_type;
        match self.aggregates.iter().find(follows) {
            Some(aggregate) => {
                self.sagas
                    .push(Arc::new(saga.following(aggregate.aggregate_type.clone())));
            }
            None => errors.push(RegistryError::Saga {
                name: saga.name.to_owned(),
                reason: "the aggregate it follows is not registered".to_owned(),
            }),
        }
    }
}

fn only(
    mut found: impl Iterator<Item = Resolved>,
    what: impl Fn() -> String,
) -> Result<Resolved, CommandError> {
    let first = found
        .next()
        .ok_or_else(|| CommandError::TypeUnknown { what: what() })?;
    match found.next() {
        None => Ok(first),
        Some(_) => Err(CommandError::TypeUnknown {
            what: format!("{} without its aggregate (several have it)", what()),
        }),
    }
}
