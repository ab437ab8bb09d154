//! The connections that read: some, each used by one query at a time.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use parking_lot::Mutex;
use sea_orm::QueryResult;
use sea_orm::sqlx::Error as DriverError;
use tokio::sync::{Semaphore, SemaphorePermit};
use wow_kernel::ports::StorageError;

use super::super::observer::StorageObserver;
use super::super::rows::Cells;
use super::super::sql::{Source, Texts};
use super::{Patience, Server, TRUSTED_IDLE, connect, within};

/// A bounded number of connections. One that failed, wasn't answered in time, or whose caller
/// went away is dropped and made anew when it is needed.
#[derive(Debug)]
pub(in crate::storage) struct Connections<S: Server> {
    server: S,
    patience: Patience,
    observer: Arc<dyn StorageObserver>,
    texts: &'static Texts,
    /// A permit for each connection that may be in use.
    places: Semaphore,
    idle: Mutex<Vec<Idle<S::Connection>>>,
}

struct Idle<C> {
    connection: C,
    since: Instant,
}

impl<C> std::fmt::Debug for Idle<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

impl<S: Server> Connections<S> {
    /// So many connections, of which this one is made already.
    pub(in crate::storage) fn new(
        server: S,
        first: S::Connection,
        count: u32,
        patience: Patience,
        observer: Arc<dyn StorageObserver>,
    ) -> Self {
        let texts = S::texts(&first);
        let first = Idle {
            connection: first,
            since: Instant::now(),
        };
        Self {
            server,
            patience,
            observer,
            texts,
            places: Semaphore::new(count.max(1) as usize),
            idle: Mutex::new(vec![first]),
        }
    }

    /// Runs a statement that changes nothing when it runs twice.
    ///
    /// # Errors
    /// [`StorageError`].
    pub(in crate::storage) async fn query(
        &self,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, StorageError> {
        let place = self.place().await?;
        // One that lay idle may have been ended meanwhile, by a restart above all: then another
        // is made, and the statement runs again.
        if let Some(connection) = self.trusted().await {
            let spare = keys.clone();
            match self.run(connection, text, spare).await {
                Err(error) if !S::survives(&error) && !is_silence(&error) => {
                    tracing::debug!(%error, "a connection failed; another is made");
                }
                Ok(rows) => return Ok(rows),
                Err(error) => return Err(S::classify(&error).into()),
            }
            self.idle.lock().clear();
        }
        let connection = connect(&self.server, self.patience).await;
        let connection = connection.map_err(|error| S::classify(&error))?;
        let rows = self.run(connection, text, keys).await;
        drop(place);
        rows.map_err(|error| S::classify(&error).into())
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, StorageError> {
        let place = tokio::time::timeout(self.patience.connect, self.places.acquire()).await;
        match place {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(StorageError::Unavailable("storage is closed".to_owned())),
            Err(_) => {
                let reason = format!("no connection was free within {:?}", self.patience.connect);
                Err(StorageError::Unavailable(reason))
            }
        }
    }

    /// A connection that was used a moment ago, or says that it is well.
    async fn trusted(&self) -> Option<S::Connection> {
        loop {
            let Idle {
                mut connection,
                since,
            } = self.idle.lock().pop()?;
            if since.elapsed() < TRUSTED_IDLE {
                return Some(connection);
            }
            match within(self.patience.connect, S::ping(&mut connection)).await {
                Ok(()) => return Some(connection),
                Err(error) => tracing::debug!(%error, "an idle connection is gone"),
            }
        }
    }

    /// Runs a statement on a connection, and keeps it if it is still good.
    async fn run(
        &self,
        mut connection: S::Connection,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, DriverError> {
        let started = Instant::now();
        let rows = within(self.patience.answer, S::query(&mut connection, text, keys)).await;
        self.observer.statement(started.elapsed());
        let good = rows.as_ref().err().is_none_or(S::survives);
        if good && !self.places.is_closed() {
            self.idle.lock().push(Idle {
                connection,
                since: Instant::now(),
            });
        }
        rows
    }
}

/// Whether the server didn't answer, which a second try would only double.
fn is_silence(error: &DriverError) -> bool {
    matches!(error, DriverError::Io(error) if error.kind() == ErrorKind::TimedOut)
}

#[async_trait]
impl<S: Server> Source for Connections<S> {
    fn texts(&self) -> &'static Texts {
        self.texts
    }

    async fn rows(
        &self,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, StorageError> {
        self.query(text, keys).await
    }

    async fn damages(&self) -> Result<Vec<String>, StorageError> {
        let rows = self.query(S::DAMAGES, None).await?;
        rows.iter().map(|row| Cells::new(row).get()).collect()
    }

    async fn close(&self) {
        self.places.close();
        let idle = std::mem::take(&mut *self.idle.lock());
        for Idle { connection, .. } in idle {
            let goodbye = tokio::time::timeout(self.patience.connect, S::close(connection));
            if goodbye.await.is_err() {
                tracing::warn!("a connection that read didn't close in time");
            }
        }
    }
}
