//! Reads (spec/03): states, snapshots and commits of one aggregate, with the same identity facts
//! as its commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::value::RawValue;
use wow_kernel::commit::{Commit, Headers, RecordedEvent};
use wow_kernel::error::CommandError;
use wow_kernel::id::{CommandId, EpochMillis, Version};
use wow_kernel::read::{READ_COMMITS_MAX, ReadRequest, SnapshotRead};
use wow_kernel::registry::AggregateDefinition;

use super::edge::Edge;
use super::error::Refusal;
use super::extract::{self, PathValues};
use super::gateway::StateAt;
use super::headers::{RequestHeaders, fault, number};
use super::render;
use super::routes::ReadKind;

/// Answers a read.
///
/// # Errors
/// What can't be used of the request, or why the aggregate can't be read.
pub(super) async fn answer(
    edge: &Edge,
    request: &HttpRequest,
    aggregate: &Arc<AggregateDefinition>,
    kind: ReadKind,
    path: PathValues<'_>,
) -> Result<HttpResponse, Refusal> {
    let headers = RequestHeaders::read(request.headers())?;
    let read = ReadRequest {
        aggregate_type: aggregate.aggregate_type.clone(),
        facts: extract::facts(&headers, path)?,
        principal: edge.authenticator.authenticate(headers.bearer()?).await?,
    };
    let state = async |at| edge.gateway.state(&read, at).await;
    let body = match kind {
        ReadKind::State => state(StateAt::Latest).await?.state.into_bytes(),
        ReadKind::StateAtVersion => {
            let version = path_number(path, "version")?;
            state(StateAt::Version(version)).await?.state.into_bytes()
        }
        ReadKind::StateAtTime => {
            let time = path_number(path, "createTime")?;
            let time = EpochMillis::try_from(time)
                .map_err(|_| fault("createTime", "it is beyond the end of time"))?;
            state(StateAt::Time(time)).await?.state.into_bytes()
        }
        ReadKind::Snapshot => snapshot(&edge.gateway.snapshot(&read).await?)?,
        ReadKind::Commits => {
            let (head, tail) = (
                path_number(path, "headVersion")?,
                path_number(path, "tailVersion")?,
            );
            check_range(head, tail)?;
            let found = edge.gateway.commits(&read, head..=tail).await?;
            let commits = found.commits.iter();
            let json: Vec<_> = commits
                .map(|commit| CommitJson::new(&found.aggregate, commit))
                .collect();
            render::to_json(&json)
        }
        ReadKind::Tracing => trace(edge, &read, request.query_string()).await?,
    };
    Ok(render::read(body))
}

fn path_number(path: PathValues<'_>, name: &'static str) -> Result<u64, CommandError> {
    number(name, path.get(name).unwrap_or_default())
}

async fn trace(edge: &Edge, read: &ReadRequest, query: &str) -> Result<Vec<u8>, CommandError> {
    let query = TraceQuery::read(query)?;
    let mut head = query.head.unwrap_or(1);
    let mut tail = query.tail.unwrap_or(Version::MAX);
    check_range(head, tail)?;
    let limit = match query.limit {
        None => READ_COMMITS_MAX,
        Some(0) => return Err(fault("limit", "use 1 or more")),
        Some(limit) => {
            // Clients ask for the last of a range, so its end has to be known.
            tail = tail.min(edge.gateway.state(read, StateAt::Latest).await?.version);
            if tail < head {
                return Err(CommandError::VersionNotReached { version: head });
            }
            head = head.max(tail.saturating_sub(limit) + 1);
            usize::try_from(limit).unwrap_or(usize::MAX)
        }
    };
    let found = edge.gateway.trace(read, head..=tail, limit).await?;
    let mut json = Vec::with_capacity(found.commits.len());
    for traced in &found.commits {
        json.push(TracedJson {
            commit: CommitJson::new(&found.aggregate, &traced.commit),
            state: raw(&traced.state)?,
        });
    }
    Ok(render::to_json(&json))
}

fn check_range(head: Version, tail: Version) -> Result<(), CommandError> {
    if head == 0 {
        return Err(fault("headVersion", "versions begin at 1"));
    }
    if tail < head {
        return Err(fault("tailVersion", "it comes before headVersion"));
    }
    Ok(())
}

/// Which of the commits a trace asks for.
#[derive(Debug, Default)]
struct TraceQuery {
    head: Option<u64>,
    tail: Option<u64>,
    limit: Option<u64>,
}

impl TraceQuery {
    fn read(query: &str) -> Result<Self, CommandError> {
        let mut found = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match name {
                "headVersion" => &mut found.head,
                "tailVersion" => &mut found.tail,
                "limit" => &mut found.limit,
                _ => continue,
            };
            if place.replace(number(name, value)?).is_some() {
                return Err(fault(name, "it is there twice"));
            }
        }
        Ok(found)
    }
}

/// A stored state, written out byte for byte.
fn raw(state: &str) -> Result<&RawValue, CommandError> {
    serde_json::from_str(state).map_err(|error| {
        tracing::error!(%error, "a stored state isn't JSON");
        CommandError::Internal
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotJson<'a> {
    context_name: &'a str,
    aggregate_name: &'a str,
    tenant_id: &'a str,
    owner_id: &'a str,
    space_id: &'a str,
    aggregate_id: &'a str,
    version: Version,
    event_id: Option<CommandId>,
    first_operator: &'a str,
    operator: &'a str,
    first_event_time: EpochMillis,
    event_time: EpochMillis,
    state: &'a RawValue,
    snapshot_time: EpochMillis,
    tags: &'a BTreeMap<String, Vec<String>>,
    deleted: bool,
}

fn snapshot(snapshot: &SnapshotRead) -> Result<Vec<u8>, CommandError> {
    let read = &snapshot.state;
    Ok(render::to_json(&SnapshotJson {
        context_name: &read.aggregate.context,
        aggregate_name: read.aggregate.spec.name,
        tenant_id: read.key.tenant.as_str(),
        owner_id: read.facts.owner.as_str(),
        space_id: read.facts.space.as_str(),
        aggregate_id: read.key.id.as_str(),
        version: read.version,
        event_id: read.facts.event_id,
        first_operator: &read.facts.first_operator,
        operator: &read.facts.operator,
        first_event_time: read.facts.first_event_time,
        event_time: read.facts.event_time,
        state: raw(&read.state)?,
        snapshot_time: snapshot.snapshot_time,
        tags: &read.facts.tags,
        deleted: read.facts.deleted,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CommitJson<'a> {
    /// A commit is named by the command that made it.
    id: CommandId,
    context_name: &'a str,
    aggregate_name: &'a str,
    aggregate_id: &'a str,
    tenant_id: &'a str,
    owner_id: &'a str,
    space_id: &'a str,
    command_id: CommandId,
    request_id: &'a str,
    version: Version,
    header: &'a Headers,
    body: Vec<EventJson<'a>>,
    create_time: EpochMillis,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventJson<'a> {
    /// The commit's id, and which of its events it is, from 1.
    id: String,
    name: &'a str,
    /// Text, for clients know it as text.
    revision: String,
    body_type: &'a str,
    body: &'a RawValue,
}

#[derive(Serialize)]
struct TracedJson<'a> {
    #[serde(flatten)]
    commit: CommitJson<'a>,
    state: &'a RawValue,
}

impl<'a> CommitJson<'a> {
    fn new(aggregate: &'a AggregateDefinition, commit: &'a Commit) -> Self {
        let event = |(index, event): (usize, &'a RecordedEvent)| EventJson {
            id: format!("{}-{}", commit.command_id, index + 1),
            name: &event.name,
            revision: event.revision.to_string(),
            body_type: &event.name,
            body: &event.body,
        };
        Self {
            id: commit.command_id,
            context_name: &aggregate.context,
            aggregate_name: aggregate.spec.name,
            aggregate_id: commit.key.id.as_str(),
            tenant_id: commit.key.tenant.as_str(),
            owner_id: commit.owner.as_str(),
            space_id: commit.space.as_str(),
            command_id: commit.command_id,
            request_id: commit.request_id.as_str(),
            version: commit.version,
            header: &commit.headers,
            body: commit.events.iter().enumerate().map(event).collect(),
            create_time: commit.committed_at,
        }
    }
}
