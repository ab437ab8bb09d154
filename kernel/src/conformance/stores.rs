//! The stores that a case runs against.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::ports::{CheckpointStore, CommitLog, History, LeaseStore, RequestLookup, SnapshotStore};

/// Lets a store's own clock move on by a duration.
pub type PassTime = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// The ports of one fresh store. All that are there work on the same data.
///
/// A store that doesn't implement a port yet leaves it out; a suite that needs it says so.
#[derive(Clone, Default)]
pub struct Stores {
    /// The log.
    pub log: Option<Arc<dyn CommitLog>>,
    /// Cold reads and second looks.
    pub history: Option<Arc<dyn History>>,
    /// Look-ups by request.
    pub requests: Option<Arc<dyn RequestLookup>>,
    /// Snapshots.
    pub snapshots: Option<Arc<dyn SnapshotStore>>,
    /// Checkpoints.
    pub checkpoints: Option<Arc<dyn CheckpointStore>>,
    /// Leases; they need [`Stores::time`] too.
    pub leases: Option<Arc<dyn LeaseStore>>,
    /// How to let time pass, by the clock that judges leases.
    pub time: Option<PassTime>,
    /// What has to live as long as the store does, and cleans up when it is dropped: a temporary
    /// folder, a schema.
    pub guard: Option<Arc<dyn Any + Send + Sync>>,
}

impl Stores {
    /// The ports of a store that implements them all.
    pub fn of<S>(store: Arc<S>) -> Self
    where
        S: CommitLog
            + History
            + RequestLookup
            + SnapshotStore
            + CheckpointStore
            + LeaseStore
            + 'static,
    {
        Self {
            log: Some(store.clone()),
            history: Some(store.clone()),
            requests: Some(store.clone()),
            snapshots: Some(store.clone()),
            checkpoints: Some(store.clone()),
            leases: Some(store),
            time: None,
            guard: None,
        }
    }

    /// Lets time pass by a call: for a store whose clock the test owns.
    #[must_use]
    pub fn with_time(self, pass: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        self.with_time_async(move |duration| {
            pass(duration);
            std::future::ready(())
        })
    }

    /// Lets time pass by a future. A database's clock can't be moved, so its test moves every
    /// stored expiry back by the duration instead; the durations are too long to sleep through.
    #[must_use]
    pub fn with_time_async<F>(
        mut self,
        pass: impl Fn(Duration) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.time = Some(Arc::new(move |duration| Box::pin(pass(duration))));
        self
    }

    /// Keeps a value alive as long as the stores.
    #[must_use]
    pub fn guarded_by(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    pub(super) fn log(&self) -> Arc<dyn CommitLog> {
        given(&self.log, "log")
    }

    pub(super) fn history(&self) -> Arc<dyn History> {
        given(&self.history, "history")
    }

    pub(super) fn requests(&self) -> Arc<dyn RequestLookup> {
        given(&self.requests, "requests")
    }

    pub(super) fn snapshots(&self) -> Arc<dyn SnapshotStore> {
        given(&self.snapshots, "snapshots")
    }

    pub(super) fn checkpoints(&self) -> Arc<dyn CheckpointStore> {
        given(&self.checkpoints, "checkpoints")
    }

    pub(super) fn leases(&self) -> Arc<dyn LeaseStore> {
        given(&self.leases, "leases")
    }

    pub(super) async fn pass(&self, duration: Duration) {
        given(&self.time, "time")(duration).await;
    }
}

fn given<T: ?Sized>(port: &Option<Arc<T>>, name: &str) -> Arc<T> {
    port.clone()
        .unwrap_or_else(|| panic!("this suite needs `Stores::{name}`, which is missing"))
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores")
            .field("log", &self.log.is_some())
            .field("history", &self.history.is_some())
            .field("requests", &self.requests.is_some())
            .field("snapshots", &self.snapshots.is_some())
            .field("checkpoints", &self.checkpoints.is_some())
            .field("leases", &self.leases.is_some())
            .field("time", &self.time.is_some())
            .finish_non_exhaustive()
    }
}
