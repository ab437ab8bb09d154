//! Rows and the kernel's types, both ways, the same for every database.
//!
//! The order of cells is that of the column lists in `wow_migrations::names`. A row that doesn't
//! hold what this code writes is reported as corrupt, never guessed at.

use std::sync::Arc;

use sea_orm::{QueryResult, TryGetable, Value};
use serde::Serialize;
use serde_json::value::RawValue;
use wow_kernel::commit::{AggregateFacts, Commit, StoredSnapshot};
use wow_kernel::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, EpochMillis, NodeName, OwnerId,
    PartitionNo, Position, RequestId, SpaceId, TenantId,
};
use wow_kernel::ports::{Checkpoint, StorageError};
use wow_kernel::recent::RequestRecord;

use super::batch::Entry;

/// Versions, positions and counts as the database holds them. None ever comes near the end of
/// either type; as an upper bound of a read, the largest means "all".
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads the cells of a row one after the other.
pub(super) struct Cells<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> Cells<'r> {
    /// From the first cell on.
    pub(super) fn new(row: &'r QueryResult) -> Self {
        Self { row, next: 0 }
    }

    pub(super) fn get<T: TryGetable>(&mut self) -> Result<T, StorageError> {
        let index = self.next;
        self.next += 1;
        self.row
            .try_get_by_index(index)
            .map_err(|error| StorageError::Corrupt(format!("cell {index}: {error}")))
    }

    pub(super) fn number<N: TryFrom<i64>>(&mut self) -> Result<N, StorageError> {
        let index = self.next;
        self.next += 1;
        let unread = |error| StorageError::Corrupt(format!("cell {index}: {error}"));
        // PostgreSQL reads a partition's number as nothing but the small number that it is.
        let number = match self.row.try_get_by_index::<i64>(index) {
            Ok(number) => number,
            Err(error) => match self.row.try_get_by_index::<i32>(index) {
                Ok(number) => number.into(),
                Err(_) => return Err(unread(error)),
            },
        };
        N::try_from(number)
            .map_err(|_| StorageError::Corrupt(format!("{number} is out of its range")))
    }

    fn text(&mut self) -> Result<Arc<str>, StorageError> {
        self.get::<String>().map(Arc::from)
    }

    fn json<T: serde::de::DeserializeOwned>(&mut self, what: &str) -> Result<T, StorageError> {
        let text: String = self.get()?;
        serde_json::from_str(&text)
            .map_err(|error| StorageError::Corrupt(format!("{what}: {error}")))
    }

    fn key(&mut self) -> Result<AggregateKey, StorageError> {
        Ok(AggregateKey {
            tenant: TenantId::trusted(self.text()?),
            aggregate_type: AggregateType::trusted(self.text()?),
            id: AggregateId::trusted(self.text()?),
        })
    }

    fn command_id(&mut self) -> Result<CommandId, StorageError> {
        let text: String = self.get()?;
        CommandId::parse(&text)
            .ok_or_else(|| StorageError::Corrupt(format!("'{text}' is no command id")))
    }

    fn result(&mut self) -> Result<Option<Arc<RawValue>>, StorageError> {
        let Some(text) = self.get::<Option<String>>()? else {
            return Ok(None);
        };
        let raw = RawValue::from_string(text)
            .map_err(|error| StorageError::Corrupt(format!("result: {error}")))?;
        Ok(Some(Arc::from(raw)))
    }

    fn commit(&mut self) -> Result<Commit, StorageError> {
        Ok(Commit {
            partition: PartitionNo(self.number()?),
            position: self.number()?,
            key: self.key()?,
            version: self.number()?,
            request_id: RequestId::trusted(self.text()?),
            command_id: self.command_id()?,
            command_type: self.text()?,
            principal: self.text()?,
            owner: OwnerId::trusted(self.text()?),
            space: SpaceId::trusted(self.text()?),
            origin: NodeName::trusted(self.text()?),
            events: self.json("events")?,
            result: self.result()?,
            headers: self.json("headers")?,
            committed_at: self.get()?,
        })
    }

    fn request(&mut self) -> Result<RequestRecord, StorageError> {
        Ok(RequestRecord {
            request_id: RequestId::trusted(self.text()?),
            command_id: self.command_id()?,
            version: self.number()?,
            command_type: self.text()?,
            principal: self.text()?,
            owner: OwnerId::trusted(self.text()?),
            result: self.result()?,
        })
    }

    fn snapshot(&mut self) -> Result<StoredSnapshot, StorageError> {
        let key = self.key()?;
        let version = self.number()?;
        let partition = PartitionNo(self.number()?);
        let position = self.number()?;
        let owner = OwnerId::trusted(self.text()?);
        let space = SpaceId::trusted(self.text()?);
        let deleted = self.get()?;
        let tags = self.json("tags")?;
        let state = self.get()?;
        let state_revision = self.number()?;
        let recent_requests = self.get::<Option<String>>()?.map(Arc::from);
        let facts = AggregateFacts {
            owner,
            space,
            deleted,
            tags,
            first_operator: self.text()?,
            operator: self.text()?,
            first_event_time: self.get()?,
            event_time: self.get()?,
            event_id: self.event_id()?,
        };
        Ok(StoredSnapshot {
            key,
            version,
            partition,
            position,
            facts,
            state,
            state_revision,
            recent_requests,
            snapshot_time: self.get()?,
        })
    }

    fn event_id(&mut self) -> Result<Option<CommandId>, StorageError> {
        let Some(text) = self.get::<Option<String>>()? else {
            return Ok(None);
        };
        CommandId::parse(&text)
            .map(Some)
            .ok_or_else(|| StorageError::Corrupt(format!("'{text}' is no event id")))
    }

    fn checkpoint(&mut self) -> Result<Checkpoint, StorageError> {
        Ok(Checkpoint {
            subscription: self.get()?,
            partition: PartitionNo(self.number()?),
            position: self.number()?,
            epoch: self.number()?,
            generation: self.number()?,
        })
    }
}

/// What is made of a row, or of the rest of one.
pub(super) trait Row: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`].
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError>;
}

/// A row of `commit_log`.
impl Row for Commit {
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError> {
        cells.commit()
    }
}

/// The cells of [`REQUEST_COLUMNS`].
impl Row for RequestRecord {
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError> {
        cells.request()
    }
}

/// A row of `snapshot`.
impl Row for StoredSnapshot {
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError> {
        cells.snapshot()
    }
}

/// A row of `checkpoint`, without the time it was written.
impl Row for Checkpoint {
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError> {
        cells.checkpoint()
    }
}

/// A version or a position.
impl Row for u64 {
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError> {
        cells.number()
    }
}

/// The columns of `commit_log` that make a [`RequestRecord`].
pub(super) const REQUEST_COLUMNS: [&str; 7] = [
    "request_id",
    "command_id",
    "version",
    "command_type",
    "principal",
    "owner_id",
    "result",
];

fn text(text: &str) -> Value {
    Value::String(Some(text.to_owned()))
}

fn optional(text: Option<&str>) -> Value {
    Value::String(text.map(str::to_owned))
}

fn number(number: u64) -> Value {
    Value::BigInt(Some(signed(number)))
}

/// JSON text for a column.
///
/// # Errors
/// What serde says of a value that JSON can't hold.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(value)
}

/// Keys as the one JSON parameter of a statement.
///
/// # Errors
/// Only what JSON can't hold, which no key is.
pub(super) fn keys<T: Serialize>(keys: &T) -> Result<String, StorageError> {
    json(keys).map_err(|error| StorageError::Unavailable(error.to_string()))
}

/// Appends the cells of a row of `commit_log`.
pub(super) fn push_commit(
    values: &mut Vec<Value>,
    entry: &Entry,
    position: Position,
    committed_at: EpochMillis,
) {
    let commit = &entry.commit;
    values.extend([
        number(commit.partition.0.into()),
        number(position),
        text(commit.key.tenant.as_str()),
        text(commit.key.aggregate_type.as_str()),
        text(commit.key.id.as_str()),
        number(commit.version),
        text(commit.request_id.as_str()),
        text(
            commit
                .command_id
                .0
                .hyphenated()
                .encode_lower(&mut uuid::Uuid::encode_buffer()),
        ),
        text(&commit.command_type),
        text(&commit.principal),
        text(commit.owner.as_str()),
        text(commit.space.as_str()),
        text(commit.origin.as_str()),
        text(&entry.events),
        optional(commit.result.as_deref().map(RawValue::get)),
        text(&entry.headers),
        Value::BigInt(Some(committed_at)),
    ]);
}

/// Appends the cells of a row of `snapshot`.
///
/// # Errors
/// What serde says of tags that JSON can't hold.
pub(super) fn push_snapshot(
    values: &mut Vec<Value>,
    snapshot: &StoredSnapshot,
    written_at: EpochMillis,
) -> Result<(), serde_json::Error> {
    let facts = &snapshot.facts;
    values.extend([
        text(snapshot.key.tenant.as_str()),
        text(snapshot.key.aggregate_type.as_str()),
        text(snapshot.key.id.as_str()),
        number(snapshot.version),
        number(snapshot.partition.0.into()),
        number(snapshot.position),
        text(facts.owner.as_str()),
        text(facts.space.as_str()),
        Value::Bool(Some(facts.deleted)),
        Value::String(Some(json(&facts.tags)?)),
        text(&snapshot.state),
        number(snapshot.state_revision.into()),
        optional(snapshot.recent_requests.as_deref()),
        text(&facts.first_operator),
        text(&facts.operator),
        Value::BigInt(Some(facts.first_event_time)),
        Value::BigInt(Some(facts.event_time)),
        Value::String(facts.event_id.map(|id| id.to_string())),
        Value::BigInt(Some(written_at)),
    ]);
    Ok(())
}
