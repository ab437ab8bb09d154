//! The commits of one aggregate, for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use wow_kernel::commit::{Commit, RecordedEvent};
use wow_kernel::id::{
    AggregateKey, CommandId, EpochMillis, NodeName, OwnerId, PartitionNo, Position, RequestId,
    SpaceId, Version,
};
use wow_kernel::ports::StorageError;

use super::reader::StorageReader;
use super::reads::AggregatePage;

/// A commit as `wow log show` prints it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownCommit {
    /// The version it reached.
    pub version: Version,
    /// When the log took it.
    pub committed_at: EpochMillis,
    /// Its partition.
    pub partition: PartitionNo,
    /// Its place there.
    pub position: Position,
    /// The request that caused it.
    pub request_id: RequestId,
    /// The command that caused it.
    pub command_id: CommandId,
    /// That command's type.
    pub command_type: Arc<str>,
    /// Who sent it; empty for an anonymous caller.
    pub principal: Arc<str>,
    /// For which owner.
    pub owner_id: OwnerId,
    /// In which space.
    pub space_id: SpaceId,
    /// Where it was admitted.
    pub origin: NodeName,
    /// What happened.
    pub events: Arc<[RecordedEvent]>,
    /// The result map.
    #[serde(serialize_with = "raw")]
    pub result: Option<Arc<RawValue>>,
    /// Its headers.
    pub headers: BTreeMap<String, String>,
}

/// Writes JSON as it is stored.
fn raw<S: serde::Serializer>(
    result: &Option<Arc<RawValue>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    result.as_deref().serialize(serializer)
}

impl From<Commit> for ShownCommit {
    fn from(commit: Commit) -> Self {
        Self {
            version: commit.version,
            committed_at: commit.committed_at,
            partition: commit.partition,
            position: commit.position,
            request_id: commit.request_id,
            command_id: commit.command_id,
            command_type: commit.command_type,
            principal: commit.principal,
            owner_id: commit.owner,
            space_id: commit.space,
            origin: commit.origin,
            events: commit.events,
            result: commit.result,
            headers: commit.headers,
        }
    }
}

impl StorageReader {
    /// The commits of an aggregate with versions in `after + 1 ..= after + limit`, oldest first.
    ///
    /// # Errors
    /// [`StorageError`].
    pub async fn show(
        &self,
        key: &AggregateKey,
        after: Version,
        limit: u32,
    ) -> Result<Vec<ShownCommit>, StorageError> {
        let up_to = after.saturating_add(limit.into());
        let page = AggregatePage {
            key: key.clone(),
            after,
            up_to,
        };
        let mut pages = self.reads.aggregates(vec![page]).await?;
        let commits = pages.pop().unwrap_or_else(|| Ok(Vec::new()))?;
        Ok(commits.into_iter().map(ShownCommit::from).collect())
    }
}
