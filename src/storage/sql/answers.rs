//! Answers to batched questions, made of rows.

use std::collections::HashMap;

use async_trait::async_trait;
use sea_orm::QueryResult;
use serde::Serialize;
use wow_kernel::commit::{Commit, StoredSnapshot};
use wow_kernel::id::{AggregateKey, PartitionNo, Position, Version};
use wow_kernel::ports::{Checkpoint, ColdHistory, PartitionHead, Probe, StorageError};
use wow_kernel::recent::{RequestRecord, unwritten};

use super::super::batcher::Answers;
use super::super::reads::{
    AggregatePage, CheckpointQuestion, PartitionPage, ProbeQuestion, Reads, RequestQuestion,
    TAIL_PAGE,
};
use super::super::rows::{self, Cells, Row, signed};
use super::texts::Texts;

/// Where rows come from: a database's connections that read.
#[async_trait]
pub(in crate::storage) trait Source: Send + Sync + 'static {
    /// Its statements.
    fn texts(&self) -> &'static Texts;

    /// Runs one of them.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn rows(
        &self,
        text: &'static str,
        keys: Option<String>,
    ) -> Result<Vec<QueryResult>, StorageError>;

    /// What the database itself finds wrong, up to a bound.
    ///
    /// # Errors
    /// [`StorageError`].
    async fn damages(&self) -> Result<Vec<String>, StorageError>;

    /// Ends its connections.
    async fn close(&self);
}

/// The reading half of a database that speaks SQL.
#[derive(Debug)]
pub(in crate::storage) struct SqlReads<S> {
    source: S,
}

/// What belongs to each question; a question's first unreadable row is its answer.
type Found<T> = Vec<Result<Vec<T>, StorageError>>;

impl<S: Source> SqlReads<S> {
    pub(in crate::storage) fn new(source: S) -> Self {
        Self { source }
    }

    /// Runs a statement over keys, and sorts its rows by the question they belong to.
    async fn find<K: Serialize, T: Row>(
        &self,
        text: &'static str,
        keys: &[K],
    ) -> Result<Found<T>, StorageError> {
        let mut found: Found<T> = keys.iter().map(|_| Ok(Vec::new())).collect();
        if keys.is_empty() {
            return Ok(found);
        }
        for row in self.source.rows(text, Some(rows::keys(&keys)?)).await? {
            let mut cells = Cells::new(&row);
            let index: usize = cells.number()?;
            let Some(answer) = found.get_mut(index) else {
                continue;
            };
            match (T::read(&mut cells), &mut *answer) {
                (Ok(item), Ok(items)) => items.push(item),
                (Err(error), Ok(_)) => *answer = Err(error),
                (_, Err(_)) => {}
            }
        }
        Ok(found)
    }

    async fn commits(&self, pages: &[AggregatePage]) -> Result<Found<Commit>, StorageError> {
        let keys: Vec<_> = pages.iter().map(range).collect();
        let mut found: Found<Commit> = self
            .find(&self.source.texts().aggregate_commits, &keys)
            .await?;
        for commits in found.iter_mut().flatten() {
            // The index gives them in this order already; SQL doesn't promise it.
            commits.sort_by_key(|commit| commit.version);
        }
        Ok(found)
    }

    /// The requests that the stored sets of these snapshots don't hold (R41).
    async fn unwritten_requests(
        &self,
        keys: &[AggregateKey],
        snapshots: &[Result<Option<StoredSnapshot>, StorageError>],
    ) -> Result<Found<RequestRecord>, StorageError> {
        let pages: Vec<_> = keys
            .iter()
            .zip(snapshots)
            .map(|(key, snapshot)| {
                let versions = unwritten(version(snapshot));
                AggregatePage {
                    key: key.clone(),
                    after: versions.start() - 1,
                    up_to: *versions.end(),
                }
            })
            .collect();
        let ranges: Vec<_> = pages.iter().map(range).collect();
        let mut found: Found<RequestRecord> = self
            .find(&self.source.texts().aggregate_requests, &ranges)
            .await?;
        for requests in found.iter_mut().flatten() {
            requests.sort_by_key(|request| request.version);
        }
        Ok(found)
    }
}

fn version(snapshot: &Result<Option<StoredSnapshot>, StorageError>) -> Version {
    snapshot
        .as_ref()
        .ok()
        .and_then(Option::as_ref)
        .map_or(0, |snapshot| snapshot.version)
}

/// An aggregate's key as a statement takes it.
fn names(key: &AggregateKey) -> (&str, &str, &str) {
    (
        key.tenant.as_str(),
        key.aggregate_type.as_str(),
        key.id.as_str(),
    )
}

/// A page as a statement takes it.
fn range(page: &AggregatePage) -> (&str, &str, &str, i64, i64) {
    let (tenant, aggregate_type, id) = names(&page.key);
    (
        tenant,
        aggregate_type,
        id,
        signed(page.after),
        signed(page.up_to),
    )
}

/// The one item of each question, if it has one.
fn single<T>(found: Found<T>) -> Vec<Result<Option<T>, StorageError>> {
    found
        .into_iter()
        .map(|items| items.map(|mut items| items.pop()))
        .collect()
}

#[async_trait]
impl<S: Source> Reads for SqlReads<S> {
    async fn requests(&self, questions: Vec<RequestQuestion>) -> Answers<Option<Commit>> {
        let keys: Vec<_> = questions
            .iter()
            .map(|question| {
                (
                    &question.tenant,
                    &question.aggregate_type,
                    &question.request_id,
                )
            })
            .collect();
        let found = self.find(&self.source.texts().requests, &keys).await?;
        Ok(single(found))
    }

    async fn histories(&self, keys: Vec<AggregateKey>) -> Answers<ColdHistory> {
        // The snapshots first: what is committed between the looks is then in the tail.
        let snapshots = self.snapshots(keys.clone()).await?;
        let requests = self.unwritten_requests(&keys, &snapshots).await?;
        let pages: Vec<_> = keys
            .into_iter()
            .zip(&snapshots)
            .map(|(key, snapshot)| {
                let after = version(snapshot);
                // One more than a page, to know whether there is more.
                AggregatePage {
                    key,
                    after,
                    up_to: after.saturating_add(TAIL_PAGE + 1),
                }
            })
            .collect();
        let tails = self.commits(&pages).await?;
        let histories = snapshots.into_iter().zip(requests).zip(tails);
        Ok(histories
            .map(|((snapshot, requests), tail)| {
                let mut tail = tail?;
                let page = usize::try_from(TAIL_PAGE).unwrap_or(usize::MAX);
                let has_more = tail.len() > page;
                tail.truncate(page);
                Ok(ColdHistory {
                    snapshot: snapshot?,
                    requests: requests?,
                    tail,
                    has_more,
                })
            })
            .collect())
    }

    async fn probes(&self, questions: Vec<ProbeQuestion>) -> Answers<Probe> {
        let keys: Vec<_> = questions
            .iter()
            .map(|question| names(&question.key))
            .collect();
        let newest: Found<Version> = self
            .find(&self.source.texts().newest_versions, &keys)
            .await?;
        let with_request: Vec<_> = questions
            .iter()
            .enumerate()
            .filter_map(|(index, question)| {
                let request_id = question.request_id.clone()?;
                let AggregateKey {
                    tenant,
                    aggregate_type,
                    ..
                } = question.key.clone();
                Some((
                    index,
                    RequestQuestion {
                        tenant,
                        aggregate_type,
                        request_id,
                    },
                ))
            })
            .collect();
        let (indexes, requests): (Vec<_>, Vec<_>) = with_request.into_iter().unzip();
        let mut commits: HashMap<usize, Result<Option<Commit>, StorageError>> = indexes
            .into_iter()
            .zip(self.requests(requests).await?)
            .collect();
        let probes = single(newest).into_iter().enumerate();
        Ok(probes
            .map(|(index, newest)| {
                let request = commits.remove(&index).unwrap_or(Ok(None))?;
                Ok(Probe {
                    newest_version: newest?.unwrap_or_default(),
                    request,
                })
            })
            .collect())
    }

    async fn aggregates(&self, pages: Vec<AggregatePage>) -> Answers<Vec<Commit>> {
        self.commits(&pages).await
    }

    async fn partitions(&self, pages: Vec<PartitionPage>) -> Answers<Vec<Commit>> {
        let keys: Vec<_> = pages
            .iter()
            .map(|page| (page.partition, signed(page.after), signed(page.up_to)))
            .collect();
        let mut found: Found<Commit> = self
            .find(&self.source.texts().partition_commits, &keys)
            .await?;
        for commits in found.iter_mut().flatten() {
            commits.sort_by_key(|commit| commit.position);
        }
        Ok(found)
    }

    async fn snapshots(&self, keys: Vec<AggregateKey>) -> Answers<Option<StoredSnapshot>> {
        let keys: Vec<_> = keys.iter().map(names).collect();
        Ok(single(
            self.find(&self.source.texts().snapshots, &keys).await?,
        ))
    }

    async fn snapshot_versions(&self, keys: Vec<Vec<AggregateKey>>) -> Answers<Vec<Version>> {
        let all: Vec<_> = keys.iter().flatten().map(names).collect();
        let found = self
            .find(&self.source.texts().snapshot_versions, &all)
            .await?;
        let mut versions = single(found).into_iter();
        Ok(keys
            .iter()
            .map(|keys| {
                versions
                    .by_ref()
                    .take(keys.len())
                    .map(|version| Ok(version?.unwrap_or_default()))
                    .collect()
            })
            .collect())
    }

    async fn heads(&self, partitions: Vec<Vec<PartitionNo>>) -> Answers<Vec<PartitionHead>> {
        let rows = self.source.rows(&self.source.texts().heads, None).await?;
        let mut heads: HashMap<PartitionNo, Position> = HashMap::new();
        for row in &rows {
            let mut cells = Cells::new(row);
            heads.insert(PartitionNo(cells.number()?), cells.number()?);
        }
        let head = |partition: &PartitionNo| PartitionHead {
            partition: *partition,
            head: heads.get(partition).copied().unwrap_or_default(),
        };
        Ok(partitions
            .iter()
            .map(|asked| Ok(asked.iter().map(head).collect()))
            .collect())
    }

    async fn checkpoints(&self, questions: Vec<CheckpointQuestion>) -> Answers<Vec<Checkpoint>> {
        let mut subscriptions: Vec<_> = questions
            .iter()
            .map(|question| [&question.subscription])
            .collect();
        subscriptions.sort_unstable();
        subscriptions.dedup();
        let keys = rows::keys(&subscriptions)?;
        let text = &self.source.texts().checkpoints;
        let rows = self.source.rows(text, Some(keys)).await?;
        let mut stored: HashMap<String, HashMap<PartitionNo, Checkpoint>> = HashMap::new();
        for row in &rows {
            let checkpoint = Checkpoint::read(&mut Cells::new(row))?;
            let of_subscription = stored.entry(checkpoint.subscription.clone()).or_default();
            of_subscription.insert(checkpoint.partition, checkpoint);
        }
        Ok(questions
            .iter()
            .map(|question| {
                let stored = stored.get(&question.subscription);
                let of = |partition| stored.and_then(|stored| stored.get(partition)).cloned();
                Ok(question.partitions.iter().filter_map(of).collect())
            })
            .collect())
    }

    async fn damages(&self) -> Result<Vec<String>, StorageError> {
        self.source.damages().await
    }

    async fn close(&self) {
        self.source.close().await;
    }
}
