//! Opening a database of a server: waits until it is there, and lets several nodes start at once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use sea_orm::sqlx::Error as DriverError;
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr};
use wow_migrations::{SchemaError, SchemaState, migrate, schema_state};

use super::super::error::OpenError;
use super::super::leases::LeaseSource;
use super::super::meta::{self, Meta};
use super::super::node::Opened;
use super::super::observer::{StorageObserver, Unobserved};
use super::super::reads::Reads;
use super::super::rows::Cells;
use super::super::settings::StorageSettings;
use super::super::sql::SqlReads;
use super::super::writer::BatchStore;
use super::connections::Connections;
use super::write::ServerWriter;
use super::{Patience, Server, connect, within};

/// How long a start waits before it tries again, the first time; twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// How long it waits at most.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How often the lock of the schema is asked for.
const LOCK_POLL: Duration = Duration::from_millis(100);

/// After how many times without the lock the log says so.
const LOCK_POLLS_TOLD: u32 = 50;

/// How long a start waits for others that change the schema.
const LOCK_POLLS_MAX: u32 = 6_000;

/// Opens a database for a node. One that is away is waited for; what waiting doesn't mend, a wrong
/// password above all, is refused at once.
///
/// # Errors
/// [`OpenError`].
pub(in crate::storage) async fn open<S: Server>(
    server: S,
    settings: StorageSettings,
    observer: Arc<dyn StorageObserver>,
) -> Result<Opened, OpenError> {
    let mut wait = FIRST_WAIT;
    loop {
        match open_once(&server, &settings, &observer).await {
            Err(error) if is_away::<S>(&error) => {
                tracing::warn!(%error, again_in = ?wait, "the database is away; the node waits for it");
                let given_up = settings.give_up.cancelled();
                if tokio::time::timeout(wait, given_up).await.is_ok() {
                    return Err(OpenError::GivenUp);
                }
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            opened => return opened,
        }
    }
}

async fn open_once<S: Server>(
    server: &S,
    settings: &StorageSettings,
    observer: &Arc<dyn StorageObserver>,
) -> Result<Opened, OpenError> {
    let patience = Patience::new(settings.connect_timeout, settings.statement_timeout);
    prepare(server, settings, patience).await?;
    let mut first = connect(server, patience).await.map_err(failed)?;
    let newest_at = {
        let text = &S::texts(&first).newest_time;
        let rows = within(patience.answer, S::query(&mut first, text, None)).await;
        let rows = rows.map_err(failed)?;
        let newest: Option<i64> = match rows.first() {
            Some(row) => row.try_get_by_index(0)?,
            None => None,
        };
        newest.unwrap_or_default()
    };
    let connecting = (0..settings.writers.max(1)).map(|_| connect(server, patience));
    let writers = try_join_all(connecting).await.map_err(failed)?;
    let writers = writers.into_iter().map(|connection| {
        let observer = Arc::clone(observer);
        let writer = ServerWriter::new(server.clone(), connection, newest_at, patience, observer);
        let writer: Box<dyn BatchStore> = Box::new(writer);
        writer
    });
    let writers = writers.collect();
    let readers = Connections::new(
        server.clone(),
        first,
        settings.readers,
        patience,
        Arc::clone(observer),
    );
    let leases = server.clone();
    let deadline = settings.connect_timeout;
    Ok(Opened {
        writers,
        reads: Arc::new(SqlReads::new(readers)),
        leases: LeaseSource {
            connect: Arc::new(move || {
                let server = leases.clone();
                Box::pin(async move { server.database(Some(deadline)).await })
            }),
            turn: None,
            deadline,
        },
    })
}

/// Opens a database only to read it, beside its nodes or without any. One that is away is not
/// waited for.
///
/// # Errors
/// [`OpenError`].
pub(in crate::storage) async fn open_read_only<S: Server>(
    server: S,
    patience: Patience,
) -> Result<(DatabaseConnection, Arc<dyn Reads>, Meta), OpenError> {
    let connection = connect(&server, patience).await.map_err(failed)?;
    let database = server.database(None).await?;
    if let SchemaState::Pending(pending) = schema_state(&database).await? {
        return Err(OpenError::SchemaBehind(pending.len()));
    }
    let meta = meta::read(&database).await?;
    let meta = meta.ok_or_else(|| OpenError::Corrupt("no node has used it yet".to_owned()))?;
    let readers = Connections::new(server, connection, 2, patience, Arc::new(Unobserved));
    Ok((database, Arc::new(SqlReads::new(readers)), meta))
}

/// Brings the schema up to date, and makes the database this service's at its first start; one
/// node at a time.
async fn prepare<S: Server>(
    server: &S,
    settings: &StorageSettings,
    patience: Patience,
) -> Result<(), OpenError> {
    let lock = lock(server, patience).await?;
    let database = server.database(None).await?;
    let prepared = async {
        if settings.migrate {
            migrate(&database).await?;
        } else if let SchemaState::Pending(pending) = schema_state(&database).await? {
            return Err(OpenError::SchemaBehind(pending.len()));
        }
        let wanted = Meta {
            partitions: settings.partitions,
            context: settings.context.clone(),
        };
        meta::settle(&database, &wanted).await
    };
    let prepared = prepared.await;
    let closed = tokio::time::timeout(patience.connect, async {
        let closed = database.close().await;
        S::close(lock).await;
        closed
    });
    if !matches!(closed.await, Ok(Ok(()))) {
        tracing::warn!("a connection that prepared the schema didn't close cleanly");
    }
    prepared
}

/// The connection that holds the lock of the schema, as long as it lives.
async fn lock<S: Server>(server: &S, patience: Patience) -> Result<S::Connection, OpenError> {
    let mut connection = connect(server, patience).await.map_err(failed)?;
    for polled in 1..=LOCK_POLLS_MAX {
        let rows = within(
            patience.answer,
            S::query(&mut connection, S::TRY_LOCK, None),
        );
        let rows = rows.await.map_err(failed)?;
        let is_ours: Option<bool> = match rows.first() {
            Some(row) => Cells::new(row)
                .get()
                .map_err(|error| OpenError::Corrupt(error.to_string()))?,
            None => None,
        };
        if is_ours == Some(true) {
            return Ok(connection);
        }
        if polled % LOCK_POLLS_TOLD == 0 {
            tracing::warn!("another process changes the schema; this one waits for it");
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
    Err(OpenError::SchemaLocked(LOCK_POLL * LOCK_POLLS_MAX))
}

fn failed(error: DriverError) -> OpenError {
    OpenError::Database(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))
}

/// Whether the database may be there later.
fn is_away<S: Server>(error: &OpenError) -> bool {
    let (OpenError::Database(error) | OpenError::Schema(SchemaError::Database(error))) = error
    else {
        return false;
    };
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => S::may_come_back(error),
        DbErr::ConnectionAcquire(_) => true,
        _ => false,
    }
}
