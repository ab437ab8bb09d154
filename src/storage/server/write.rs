//! A log writer's connection to a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sea_orm::sqlx::Error as DriverError;
use wow_kernel::id::EpochMillis;
use wow_kernel::ports::StorageError;

use super::super::batch::{Batch, Entry, Written};
use super::super::error::{BatchFault, UniqueKey};
use super::super::observer::StorageObserver;
use super::super::sql::{rival_keys, rivals};
use super::super::writer::BatchStore;
use super::{CommitSent, Patience, Server, TRUSTED_IDLE, WriteFault, connect, within};

/// How often a batch is tried that the database undid because of what others did.
const TRIES: u32 = 5;

/// How long it waits before it is tried again, at most, the first time; twice as long each time.
const BACKOFF: Duration = Duration::from_millis(5);

/// A writer of a database that several nodes may write.
pub(super) struct ServerWriter<S: Server> {
    server: S,
    patience: Patience,
    observer: Arc<dyn StorageObserver>,
    /// None after a failure, until the next batch connects again.
    connection: Option<S::Connection>,
    used_at: Instant,
    /// The newest time this writer was given: the server's clock may step back, the log's doesn't.
    newest_at: EpochMillis,
}

impl<S: Server> ServerWriter<S> {
    pub(super) fn new(
        server: S,
        connection: S::Connection,
        newest_at: EpochMillis,
        patience: Patience,
        observer: Arc<dyn StorageObserver>,
    ) -> Self {
        Self {
            server,
            patience,
            observer,
            connection: Some(connection),
            used_at: Instant::now(),
            newest_at,
        }
    }

    /// Has a connection that answered a moment ago. One that was ended while it lay idle is found
    /// out here, before anything is sent, and costs nobody an unknown outcome.
    async fn ready(&mut self) -> Result<&mut S::Connection, DriverError> {
        if self.used_at.elapsed() >= TRUSTED_IDLE
            && let Some(connection) = &mut self.connection
            && let Err(error) = within(self.patience.connect, S::ping(connection)).await
        {
            tracing::info!(%error, "the log writer's connection is gone; it connects again");
            self.connection = None;
        }
        if self.connection.is_none() {
            self.connection = Some(connect(&self.server, self.patience).await?);
        }
        self.used_at = Instant::now();
        self.connection
            .as_mut()
            .ok_or_else(|| DriverError::Protocol("there is no connection".to_owned()))
    }

    /// Tries once. A connection that didn't answer in time is dropped: the server rolls back what
    /// it finds open, and nothing of ours is read from it any more.
    async fn attempt(&mut self, batch: &Batch<'_>) -> Result<Written, WriteFault> {
        let (answer, newest_at) = (self.patience.answer, self.newest_at);
        let observer = Arc::clone(&self.observer);
        let commit = CommitSent::default();
        let connection = match self.ready().await {
            Ok(connection) => connection,
            Err(error) => return Err(commit.silence(error.to_string())),
        };
        let started = Instant::now();
        let write = S::write(connection, batch, newest_at, &commit);
        let written = tokio::time::timeout(answer, write).await;
        observer.statement(started.elapsed());
        self.used_at = Instant::now();
        match written {
            Ok(written) => written,
            Err(_) => {
                self.connection = None;
                Err(commit.silence(format!("no answer within {answer:?}")))
            }
        }
    }
}

#[async_trait]
impl<S: Server> BatchStore for ServerWriter<S> {
    async fn execute(&mut self, batch: &Batch<'_>) -> Result<Written, BatchFault> {
        let mut tried = 1;
        // What waited long for a lock isn't tried many times more.
        let until = Instant::now() + self.patience.answer;
        loop {
            match self.attempt(batch).await {
                Ok(written) => {
                    let times = written.receipts.iter().map(|receipt| receipt.committed_at);
                    self.newest_at = times.max().unwrap_or_default().max(self.newest_at);
                    return Ok(written);
                }
                Err(WriteFault::Again(reason)) if tried < TRIES && Instant::now() < until => {
                    tracing::debug!(reason, tried, "a batch was undone, and is tried again");
                    let most = BACKOFF * 2_u32.pow(tried);
                    tokio::time::sleep(most.mul_f64(rand::random())).await;
                    tried += 1;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    async fn taken(&mut self, entries: &[&Entry]) -> Result<Vec<Option<UniqueKey>>, StorageError> {
        let keys = rival_keys(entries)?;
        let patience = self.patience.answer;
        let started = Instant::now();
        let connection = self.ready().await.map_err(|error| S::classify(&error))?;
        let text = &S::texts(connection).taken;
        let rows = within(patience, S::query(connection, text, Some(keys))).await;
        self.observer.statement(started.elapsed());
        rivals(&rows.map_err(|error| S::classify(&error))?, entries.len())
    }

    async fn reset(&mut self) {
        // Without a goodbye: a server that stands still would keep it waiting.
        self.connection = None;
    }

    async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            let goodbye = tokio::time::timeout(self.patience.connect, S::close(connection));
            if goodbye.await.is_err() {
                tracing::warn!("the log writer's connection didn't close in time");
            }
        }
    }
}
