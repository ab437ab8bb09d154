//! Members and partition leases in a database, judged by its clock (R70, R72).
//!
//! ```text
//! calls ──▶ one connection of their own ──▶ script: a few statements in a transaction
//! ```
//!
//! Nothing else uses that connection, so no load on the log or on reads ever keeps a renewal
//! waiting. A call that isn't answered in time leaves the connection behind, and the next one
//! makes another. A call that was begun is never cancelled.

mod cells;
mod script;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use wow_kernel::id::PartitionNo;
use wow_kernel::ports::{LeaseStore, Member, MemberClaim, PartitionLease, StorageError};

use self::script::Script;

/// How often a call is tried that the database undid because of what others did.
const TRIES: u32 = 8;

/// How long it waits before it is tried again, at most, the first time.
const BACKOFF: Duration = Duration::from_millis(5);

/// Makes the connection.
pub(super) type Connect =
    Arc<dyn Fn() -> BoxFuture<'static, Result<DatabaseConnection, DbErr>> + Send + Sync>;

/// How the leases of a database are reached.
#[derive(Clone)]
pub(super) struct LeaseSource {
    pub(super) connect: Connect,
    /// Where several connections of this process take turns in writing; a fair queue, in which a
    /// renewal waits for one batch at most.
    pub(super) turn: Option<Arc<Mutex<()>>>,
    /// How long a call may take, connecting included.
    pub(super) deadline: Duration,
}

/// The leases of a database.
pub(super) struct SqlLeases {
    runtime: Handle,
    inner: Arc<Inner>,
}

struct Inner {
    source: LeaseSource,
    /// None before the first call, and after one that failed.
    connection: Mutex<Option<DatabaseConnection>>,
}

impl fmt::Debug for SqlLeases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlLeases").finish_non_exhaustive()
    }
}

impl SqlLeases {
    /// Leases whose I/O runs on a runtime.
    pub(super) fn new(source: LeaseSource, runtime: Handle) -> Self {
        let inner = Arc::new(Inner {
            source,
            connection: Mutex::new(None),
        });
        Self { runtime, inner }
    }

    /// Ends the connection.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.inner.connection.lock().await.take() {
            let closed = tokio::time::timeout(self.inner.source.deadline, connection.close());
            if !matches!(closed.await, Ok(Ok(()))) {
                tracing::warn!("the connection of the leases didn't close cleanly");
            }
        }
    }

    /// Runs a script on a task of its own.
    async fn run<T, F, Fut>(&self, script: F) -> Result<T, StorageError>
    where
        T: Send + 'static,
        F: Fn(Script) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, DbErr>> + Send,
    {
        let inner = Arc::clone(&self.inner);
        let done = self.runtime.spawn(async move { inner.run(script).await });
        done.await.unwrap_or_else(|error| {
            let reason = format!("a call of the leases failed: {error}");
            Err(StorageError::Unavailable(reason))
        })
    }
}

impl Inner {
    async fn run<T, F, Fut>(&self, script: F) -> Result<T, StorageError>
    where
        F: Fn(Script) -> Fut,
        Fut: Future<Output = Result<T, DbErr>>,
    {
        let mut connection = self.connection.lock().await;
        let mut tried = 1;
        loop {
            let once = async {
                let database = match &*connection {
                    Some(database) => database.clone(),
                    None => connection.insert((self.source.connect)().await?).clone(),
                };
                let turn = self.source.turn.as_ref();
                let _turn = match turn {
                    Some(turn) => Some(turn.lock().await),
                    None => None,
                };
                script(Script::new(database)).await
            };
            let error = match tokio::time::timeout(self.source.deadline, once).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) if is_undone(&error) && tried < TRIES => {
                    let most = BACKOFF * 2_u32.pow(tried);
                    tokio::time::sleep(most.mul_f64(rand::random())).await;
                    tried += 1;
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {:?}", self.source.deadline),
            };
            *connection = None;
            return Err(StorageError::Unavailable(error));
        }
    }
}

/// All members and all partition leases, for a reader that takes no part.
pub(super) async fn view(
    database: &DatabaseConnection,
) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError> {
    let viewed = Script::new(database.clone()).view().await;
    viewed.map_err(|error| StorageError::Unavailable(error.to_string()))
}

/// Whether the database undid a transaction because of another: a deadlock, a serialisation
/// failure, or a row that two inserted at once.
fn is_undone(error: &DbErr) -> bool {
    let (DbErr::Exec(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error))) =
        error
    else {
        return false;
    };
    // SQLSTATEs of PostgreSQL and MySQL, and SQLite's codes.
    let undone = ["40001", "40P01", "23505", "23000", "1555", "2067"];
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| undone.contains(&&*code))
}

#[async_trait]
impl LeaseStore for SqlLeases {
    async fn claim(&self, member: &Member, ttl: Duration) -> Result<MemberClaim, StorageError> {
        let member = member.clone();
        let claim = move |script: Script| {
            let member = member.clone();
            async move { script.claim(&member, ttl).await }
        };
        self.run(claim).await
    }

    async fn renew(&self, member: &Member, ttl: Duration) -> Result<bool, StorageError> {
        let member = member.clone();
        let renew = move |script: Script| {
            let member = member.clone();
            async move { script.renew(&member, ttl).await }
        };
        self.run(renew).await
    }

    async fn view(&self) -> Result<(Vec<Member>, Vec<PartitionLease>), StorageError> {
        self.run(|script: Script| async move { script.view().await })
            .await
    }

    async fn take(
        &self,
        owner: &Member,
        seen: &[PartitionLease],
    ) -> Result<Vec<PartitionLease>, StorageError> {
        if seen.is_empty() {
            return Ok(Vec::new());
        }
        let (owner, seen) = (owner.clone(), seen.to_vec());
        let take = move |script: Script| {
            let (owner, seen) = (owner.clone(), seen.clone());
            async move { script.take(&owner, &seen).await }
        };
        self.run(take).await
    }

    async fn release(
        &self,
        owner: &Member,
        partitions: &[PartitionNo],
    ) -> Result<(), StorageError> {
        if partitions.is_empty() {
            return Ok(());
        }
        let (owner, partitions) = (owner.clone(), partitions.to_vec());
        let release = move |script: Script| {
            let (owner, partitions) = (owner.clone(), partitions.clone());
            async move { script.release(&owner, &partitions).await }
        };
        self.run(release).await
    }

    async fn leave(&self, member: &Member) -> Result<(), StorageError> {
        let member = member.clone();
        let leave = move |script: Script| {
            let member = member.clone();
            async move { script.leave(&member).await }
        };
        self.run(leave).await
    }
}
