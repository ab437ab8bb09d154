//! Reads (spec/03): states, snapshots and commits of one aggregate, with the same identity facts
//! as its commands.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use wow_kernel::commit::{Commit, Headers, StoredSnapshot};
use wow_kernel::error::CommandError;
use wow_kernel::id::{CommandId, EpochMillis, Version};
use wow_kernel::registry::AggregateDefinition;

use super::edge::Edge;
use super::error::Refusal;
use super::extract::{self, PathValues};
use super::gateway::{ReadRequest, StateAt};
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
        aggregate: aggregate.clone(),
        facts: extract::facts(&headers, path)?,
        principal: edge.authenticator.authenticate(headers.bearer()?).await?,
    };
    let body = match kind {
        ReadKind::State => edge
            .gateway
            .state(read, StateAt::Latest)
            .await?
            .into_bytes(),
        ReadKind::StateAtVersion => {
            let at = StateAt::Version(path_number(path, "version")?);
            edge.gateway.state(read, at).await?.into_bytes()
        }
        ReadKind::StateAtTime => {
            let time = path_number(path, "createTime")?;
            let time = EpochMillis::try_from(time)
                .map_err(|_| fault("createTime", "it is beyond the end of time"))?;
            edge.gateway
                .state(read, StateAt::Time(time))
                .await?
                .into_bytes()
        }
        ReadKind::Snapshot => snapshot(aggregate, &edge.gateway.snapshot(read).await?)?,
        ReadKind::Commits => commits(edge, read, path).await?,
        ReadKind::Tracing => tracing(edge, read, request.query_string()).await?,
    };
    Ok(render::read(body))
}

fn path_number(path: PathValues<'_>, name: &'static str) -> Result<u64, CommandError> {
    number(name, path.get(name).unwrap_or_default())
}

async fn commits(edge: &Edge, read: ReadRequest, path: PathValues<'_>) -> Result<Vec<u8>, Refusal> {
    let head = path_number(path, "headVersion")?;
    let tail = path_number(path, "tailVersion")?;
    check_range(head, tail)?;
    let aggregate = read.aggregate.clone();
    let max = edge.settings.read_commits_max;
    let commits = edge.gateway.commits(read, head, tail, max + 1).await?;
    if commits.len() > max {
        let reason = format!("more than {max} commits lie between; ask for fewer at once");
        return Err(fault("tailVersion", reason).into());
    }
    let json: Vec<_> = commits
        .iter()
        .map(|commit| CommitJson::new(&aggregate, commit))
        .collect();
    Ok(render::to_json(&json))
}

async fn tracing(edge: &Edge, read: ReadRequest, query: &str) -> Result<Vec<u8>, Refusal> {
    let query = TracingQuery::read(query)?;
    let head = query.head.unwrap_or(1);
    let tail = query.tail.unwrap_or(Version::MAX);
    check_range(head, tail)?;
    let max = edge.settings.read_commits_max;
    let limit = match query.limit {
        None => max,
        Some(limit) => usize::try_from(limit)
            .ok()
            .filter(|limit| *limit <= max)
            .ok_or_else(|| fault("limit", format!("use a number up to {max}")))?,
    };
    let aggregate = read.aggregate.clone();
    let traced = edge.gateway.tracing(read, head, tail, limit).await?;
    let mut json = Vec::with_capacity(traced.len());
    for entry in &traced {
        json.push(TracedJson {
            commit: CommitJson::new(&aggregate, &entry.commit),
            state: raw(&entry.state)?,
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

/// Which of the commits a tracing asks for.
#[derive(Debug, Default)]
struct TracingQuery {
    head: Option<u64>,
    tail: Option<u64>,
    limit: Option<u64>,
}

impl TracingQuery {
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

fn snapshot(
    aggregate: &AggregateDefinition,
    snapshot: &StoredSnapshot,
) -> Result<Vec<u8>, CommandError> {
    Ok(render::to_json(&SnapshotJson {
        context_name: &aggregate.context,
        aggregate_name: aggregate.spec.name,
        tenant_id: snapshot.key.tenant.as_str(),
        owner_id: snapshot.facts.owner.as_str(),
        space_id: snapshot.facts.space.as_str(),
        aggregate_id: snapshot.key.id.as_str(),
        version: snapshot.version,
        event_id: snapshot.facts.event_id,
        first_operator: &snapshot.facts.first_operator,
        operator: &snapshot.facts.operator,
        first_event_time: snapshot.facts.first_event_time,
        event_time: snapshot.facts.event_time,
        state: raw(&snapshot.state)?,
        snapshot_time: snapshot.snapshot_time,
        tags: &snapshot.facts.tags,
        deleted: snapshot.facts.deleted,
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
        let event = |(index, event): (usize, &'a wow_kernel::commit::RecordedEvent)| EventJson {
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
