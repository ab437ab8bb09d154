//! The storage that the configuration names, as the kernel's ports.

use std::sync::Arc;

use tokio::runtime::{Handle, Runtime};
use wow_kernel::memory::MemoryStore;
use wow_kernel::ports::{CheckpointStore, Clock, CommitLog, History, RequestLookup, SnapshotStore};

use super::builder::NodeError;
use super::health::Observed;
use crate::config::{Backend as BackendKind, Config, Synchronous};
use crate::storage::{DatabaseFile, Durability, Storage, StorageObserver, StorageSettings};

/// The ports of one store.
#[derive(Clone)]
pub(super) struct StorePorts {
    pub(super) log: Arc<dyn CommitLog>,
    pub(super) history: Arc<dyn History>,
    pub(super) requests: Arc<dyn RequestLookup>,
    pub(super) snapshots: Arc<dyn SnapshotStore>,
    pub(super) checkpoints: Arc<dyn CheckpointStore>,
}

impl StorePorts {
    fn of<S>(store: &Arc<S>) -> Self
    where
        S: CommitLog + History + RequestLookup + SnapshotStore + CheckpointStore + 'static,
    {
        Self {
            log: store.clone(),
            history: store.clone(),
            requests: store.clone(),
            snapshots: store.clone(),
            checkpoints: store.clone(),
        }
    }
}

/// The store, and the threads on which its I/O runs.
#[derive(Debug)]
pub(super) struct Backend {
    storage: Option<Arc<Storage>>,
    runtime: Option<Runtime>,
}

impl Backend {
    /// Opens the store.
    ///
    /// # Errors
    /// [`NodeError`] says what an operator has to do.
    pub(super) async fn open(
        config: &Config,
        clock: Arc<dyn Clock>,
        observed: Observed,
    ) -> Result<(Self, StorePorts), NodeError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name("wow-io")
            .build()
            .map_err(NodeError::Threads)?;
        if config.storage.url.backend() == BackendKind::Memory {
            let store = Arc::new(MemoryStore::new(clock));
            let backend = Self {
                storage: None,
                runtime: Some(runtime),
            };
            return Ok((backend, StorePorts::of(&store)));
        }
        let health = Arc::clone(&observed.health);
        let observer: Arc<dyn StorageObserver> = Arc::new(observed);
        let opened = Storage::open(settings(config), runtime.handle().clone(), observer).await;
        match opened {
            Ok(storage) => {
                if let Some(file) = DatabaseFile::of(config.storage.url.expose()) {
                    runtime.spawn(health.watch(file));
                }
                let storage = Arc::new(storage);
                let ports = StorePorts::of(&storage);
                Ok((
                    Self {
                        storage: Some(storage),
                        runtime: Some(runtime),
                    },
                    ports,
                ))
            }
            Err(error) => {
                // A runtime must not be dropped where async code runs.
                runtime.shutdown_background();
                Err(error.into())
            }
        }
    }

    /// The runtime on which storage and blocking command functions run.
    pub(super) fn runtime(&self) -> Handle {
        // Taken only by `close` and `drop`, which end this value.
        self.runtime
            .as_ref()
            .map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }

    /// Writes what is queued, and frees the store.
    pub(super) async fn close(mut self) {
        if let Some(storage) = self.storage.take() {
            storage.close().await;
        }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How the configuration wants storage opened.
pub(super) fn settings(config: &Config) -> StorageSettings {
    let storage = &config.storage;
    let mut settings = StorageSettings::new(storage.url.expose(), config.context.name.as_str());
    settings.partitions = config.log.partitions;
    settings.migrate = storage.migrates_at_start();
    settings.readers = u32::try_from(storage.connection_count()).unwrap_or(u32::MAX);
    settings.durability = match storage.synchronous {
        Synchronous::Full => Durability::Full,
        Synchronous::Normal => Durability::Normal,
    };
    settings.connect_timeout = storage.connect_timeout;
    settings.statement_timeout = storage.statement_timeout;
    settings
}
