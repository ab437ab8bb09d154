//! What operators do to a node's storage while no node runs on it.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::backend;
use crate::config::{Backend, Config};
use crate::storage::{OpenError, Storage, Unobserved};

/// Brings the schema of the configured database up to date, and creates it where there is none.
/// Memory has no schema.
///
/// # Errors
/// [`OpenError`]; a database that a node has open, or that is newer than this binary, is refused
/// and not touched.
pub async fn migrate(config: &Config) -> Result<(), OpenError> {
    if config.storage.url.backend() == Backend::Memory {
        return Ok(());
    }
    let mut settings = backend::settings(config);
    settings.migrate = true;
    let storage = Storage::open(settings, Handle::current(), Arc::new(Unobserved)).await?;
    storage.close().await;
    Ok(())
}
