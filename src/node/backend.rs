//! The storage that the configuration names, as the kernel's ports.

use std::sync::Arc;

use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;
use wow_kernel::memory::MemoryStore;
use wow_kernel::ports::{
    CheckpointStore, Clock, CommitLog, History, LeaseStore, RequestLookup, SnapshotStore,
};

use super::builder::NodeError;
use super::health::Observed;
use crate::config::{Backend as BackendKind, Config, Synchronous};
use crate::storage::{
    DatabaseFile, Durability, Password, Storage, StorageObserver, StorageSettings,
};

/// The ports of one store.
#[derive(Clone)]
pub(super) struct StorePorts {
    pub(super) log: Arc<dyn CommitLog>,
    pub(super) history: Arc<dyn History>,
    pub(super) requests: Arc<dyn RequestLookup>,
    pub(super) snapshots: Arc<dyn SnapshotStore>,
    pub(super) checkpoints: Arc<dyn CheckpointStore>,
    /// None where storage is this node's alone.
    pub(super) leases: Option<Arc<dyn LeaseStore>>,
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
            leases: None,
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
    /// Opens the store; one that is away is waited for until `give_up`.
    ///
    /// # Errors
    /// [`NodeError`] says what an operator has to do.
    pub(super) async fn open(
        config: &Config,
        clock: Arc<dyn Clock>,
        observed: Observed,
        give_up: CancellationToken,
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
        // From here on the runtime is the backend's, whose drop ends it without waiting: one must
        // not be waited for where async code runs.
        let handle = runtime.handle().clone();
        let mut backend = Self {
            storage: None,
            runtime: Some(runtime),
        };
        let settings = StorageSettings {
            give_up,
            ..settings(config)
        };
        let health = Arc::clone(&observed.health);
        let observer: Arc<dyn StorageObserver> = Arc::new(observed);
        let storage = Arc::new(Storage::open(settings, handle.clone(), observer).await?);
        if let Some(file) = DatabaseFile::of(config.storage.url.expose()) {
            handle.spawn(health.watch(file));
        }
        backend.storage = Some(Arc::clone(&storage));
        let mut ports = StorePorts::of(&storage);
        if config.storage.url.backend().is_shared() {
            ports.leases = Some(storage);
        }
        Ok((backend, ports))
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
    let password = storage.password.as_ref();
    settings.password = password.map(|password| Password::new(password.expose()));
    settings.writers = u32::try_from(storage.writer_count()).unwrap_or(u32::MAX);
    settings.readers = u32::try_from(storage.connection_count()).unwrap_or(u32::MAX);
    settings.durability = match storage.synchronous {
        Synchronous::Full => Durability::Full,
        Synchronous::Normal => Durability::Normal,
    };
    settings.connect_timeout = storage.connect_timeout;
    settings.statement_timeout = storage.statement_timeout;
    settings
}
