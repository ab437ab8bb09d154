//! Which router each aggregate type has, out of `[router]` (R20).

use std::collections::HashMap;

use wow_kernel::id::AggregateType;
use wow_kernel::registry::Registry;
use wow_kernel::router::RouterKind;

use crate::config::{Backend, Config, RouterKind as Setting};

/// A router that this node can't have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouterError {
    /// Nothing of this name is registered.
    #[error("router.{0}: no aggregate type of this name is registered")]
    Unknown(String),
    /// There are no command topics.
    #[error("router.{0}: this node has no command topics yet; use \"partitioned\" or \"local\"")]
    NoTopic(String),
}

/// The routers that aren't the default.
///
/// # Errors
/// [`RouterError`], for the first setting that can't be followed.
pub(super) fn routers(
    config: &Config,
    registry: &Registry,
) -> Result<HashMap<AggregateType, RouterKind>, RouterError> {
    let aggregates = registry.aggregates();
    for (name, setting) in &config.router.aggregates {
        if !aggregates
            .iter()
            .any(|aggregate| aggregate.spec.name == name)
        {
            return Err(RouterError::Unknown(name.clone()));
        }
        if *setting == Setting::Kafka {
            return Err(RouterError::NoTopic(name.clone()));
        }
    }
    let is_forced = config.storage.url.backend() == Backend::Memory;
    let mut routers = HashMap::new();
    for aggregate in aggregates {
        let name = aggregate.spec.name;
        match config.router.of(name) {
            Setting::Local => {}
            Setting::Partitioned if is_forced && config.router.aggregates.contains_key(name) => {
                tracing::warn!(
                    aggregate_type = name,
                    "routed locally: a log in memory has no partitions on other nodes"
                );
            }
            Setting::Partitioned if is_forced => {}
            Setting::Partitioned | Setting::Kafka => continue,
        }
        routers.insert(aggregate.aggregate_type.clone(), RouterKind::Local);
    }
    Ok(routers)
}
