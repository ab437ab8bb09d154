//! Everything that a node refuses before it touches storage or a port.
//!
//! A start and `wow config check` both come here, so that what the one refuses the other does.

use std::collections::HashMap;
use std::sync::Arc;

use wow_kernel::id::AggregateType;
use wow_kernel::ports::Clock;
use wow_kernel::registry::{Registry, RegistryBuilder};
use wow_kernel::router::RouterKind;

use super::builder::NodeError;
use super::routers::routers;
use super::settings;
use crate::access::Verifier;
use crate::config::{Backend, Config};
use crate::http::{HttpError, RouteTable};
use crate::storage::Storage;

/// What a start goes on with.
pub(super) struct Checked {
    pub(super) registry: Arc<Registry>,
    pub(super) routers: HashMap<AggregateType, RouterKind>,
    /// What verifies tokens; none where callers are believed.
    pub(super) verifier: Option<Verifier>,
}

/// Something that the configuration asks for, and this version doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotYet {
    /// The key.
    pub key: &'static str,
    /// What is missing.
    pub what: &'static str,
}

/// Checks types and configuration, each by itself and the one against the other.
///
/// # Errors
/// [`NodeError`].
pub(super) async fn check(
    config: &Config,
    types: RegistryBuilder,
    clock: Arc<dyn Clock>,
) -> Result<Checked, NodeError> {
    let missing = not_yet(config);
    if !missing.is_empty() {
        return Err(NodeError::NotYet(missing));
    }
    if config.storage.url.backend() != Backend::Memory {
        Storage::check_url(config.storage.url.expose())?;
    }
    let registry = Arc::new(types.build().map_err(NodeError::Types)?);
    let routers = routers(config, &registry)?;
    RouteTable::new(&registry).map_err(HttpError::Routes)?;
    let verifier = match settings::access(config)? {
        None => None,
        Some(access) => Some(Verifier::open(access, clock).await?),
    };
    Ok(Checked {
        registry,
        routers,
        verifier,
    })
}

/// What the configuration knows and this version can't do: silence would promise it.
fn not_yet(config: &Config) -> Vec<NotYet> {
    [
        (
            config.kafka.brokers.is_some(),
            "kafka.brokers",
            "command topics",
        ),
        (
            config.telemetry.otlp_endpoint.is_some(),
            "telemetry.otlp-endpoint",
            "trace export",
        ),
    ]
    .into_iter()
    .filter_map(|(is_set, key, what)| is_set.then_some(NotYet { key, what }))
    .collect()
}
