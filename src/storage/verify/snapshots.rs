//! Snapshots: none is ahead of the log, and each is what the log gives.

use std::sync::Arc;

use sea_orm::Value;
use wow_kernel::commit::{AggregateFacts, StoredSnapshot};
use wow_kernel::execute::Loaded;
use wow_kernel::id::{AggregateId, AggregateKey, AggregateType, TenantId, Version};
use wow_kernel::partition::partition_of;
use wow_kernel::ports::StorageError;
use wow_kernel::registry::AggregateDefinition;
use wow_migrations::names::snapshot as names;

use super::super::reads::{AggregatePage, ProbeQuestion};
use super::super::rows::{Cells, Row};
use super::texts::time_fault;
use super::{Finding, Step, Verification, exact};

/// How many snapshots are read at once.
const PAGE: i64 = 128;

/// How many commits are replayed from one read.
const REPLAY_PAGE: Version = 256;

impl Verification<'_> {
    /// Looks at every snapshot, in the order of their keys.
    pub(super) async fn snapshots(&mut self) -> Result<(), StorageError> {
        let total = match self
            .reader
            .query("select count(*) from snapshot", [])
            .await?
            .first()
        {
            Some(row) => Cells::new(row).number()?,
            None => 0,
        };
        self.tell(Step::Snapshots, 0, total);
        let mut last = AggregateKey {
            tenant: TenantId::trusted(""),
            aggregate_type: AggregateType::trusted(""),
            id: AggregateId::trusted(""),
        };
        loop {
            let page = self.snapshots_after(&mut last).await?;
            let Some(page) = page else { return Ok(()) };
            self.compare_with_log(page).await?;
            self.tell(Step::Snapshots, self.report.snapshots, total);
        }
    }

    /// The readable snapshots of the next page, and the key of its last; none after the last page.
    async fn snapshots_after(
        &mut self,
        last: &mut AggregateKey,
    ) -> Result<Option<Vec<StoredSnapshot>>, StorageError> {
        let text = format!(
            "select {columns} from {table} where (tenant_id, aggregate_type, aggregate_id) > \
             ($1, $2, $3) order by tenant_id, aggregate_type, aggregate_id limit $4",
            columns = names::COLUMNS.join(", "),
            table = names::TABLE,
        );
        let after = [
            Value::from(last.tenant.as_str()),
            Value::from(last.aggregate_type.as_str()),
            Value::from(last.id.as_str()),
            Value::from(PAGE),
        ];
        let rows = self.reader.query(&text, after).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut snapshots = Vec::new();
        for row in &rows {
            self.report.snapshots += 1;
            match StoredSnapshot::read(&mut Cells::new(row)) {
                Ok(snapshot) => snapshots.push(snapshot),
                Err(error) => self.report.add(Finding::SnapshotUnreadable {
                    after: last.to_string(),
                    reason: error.to_string(),
                }),
            }
            let mut cells = Cells::new(row);
            let (tenant, aggregate_type, id): (String, String, String) =
                (cells.get()?, cells.get()?, cells.get()?);
            *last = AggregateKey {
                tenant: TenantId::trusted(tenant),
                aggregate_type: AggregateType::trusted(aggregate_type),
                id: AggregateId::trusted(id),
            };
        }
        Ok(Some(snapshots))
    }

    async fn compare_with_log(
        &mut self,
        snapshots: Vec<StoredSnapshot>,
    ) -> Result<(), StorageError> {
        // Read after the snapshots: the log only grows.
        let questions = snapshots
            .iter()
            .map(|snapshot| ProbeQuestion {
                key: snapshot.key.clone(),
                request_id: None,
            })
            .collect();
        let probes = self.reader.reads.probes(questions).await?;
        for (snapshot, probe) in snapshots.iter().zip(probes) {
            self.odd_place(snapshot);
            let newest = match probe {
                Ok(probe) => probe.newest_version,
                // An entry that can't be read is in the report already.
                Err(StorageError::Corrupt(_)) => continue,
                Err(error) => return Err(error),
            };
            if snapshot.version > newest {
                self.report.add(Finding::SnapshotBeyondLog {
                    aggregate: snapshot.key.to_string(),
                    version: snapshot.version,
                    newest,
                });
                continue;
            }
            self.compare(snapshot).await?;
            self.compare_requests(snapshot).await?;
        }
        Ok(())
    }

    /// A snapshot lies where its aggregate does, and has a time.
    fn odd_place(&mut self, snapshot: &StoredSnapshot) {
        let mut odd = |column, reason| {
            self.report.add(Finding::Odd {
                place: format!("snapshot of {}", snapshot.key),
                column,
                reason,
            });
        };
        let placed = partition_of(&snapshot.key, self.reader.meta().partitions);
        if placed != snapshot.partition {
            let reason = format!("{} instead of {placed}", snapshot.partition);
            odd("partition_no", reason);
        }
        if let Some(reason) = time_fault(snapshot.snapshot_time) {
            odd("snapshot_time", reason);
        }
    }

    async fn compare(&mut self, snapshot: &StoredSnapshot) -> Result<(), StorageError> {
        let Some(registry) = self.registry else {
            return self.compare_place(snapshot).await;
        };
        let definition = registry.aggregate(&snapshot.key.aggregate_type).cloned();
        let skipped = match &definition {
            None => Some("type-unknown"),
            Some(definition) if definition.spec.state_revision != snapshot.state_revision => {
                Some("other-state-revision")
            }
            Some(_) => None,
        };
        if let Some(reason) = skipped {
            self.report.skip(reason);
            return self.compare_place(snapshot).await;
        }
        let Some(definition) = definition else {
            return Ok(());
        };
        let loaded = match self.replay(&definition, snapshot).await? {
            Ok(loaded) => loaded,
            Err(reason) => {
                self.report.add(Finding::ReplayFailed {
                    aggregate: snapshot.key.to_string(),
                    version: snapshot.version,
                    reason,
                });
                return Ok(());
            }
        };
        self.report.replayed += 1;
        if loaded.position != snapshot.position {
            self.misplaced(snapshot);
        }
        if let Some(path) = first_difference(&definition, &loaded, snapshot) {
            self.report.add(Finding::SnapshotDiffers {
                aggregate: snapshot.key.to_string(),
                version: snapshot.version,
                path,
            });
        }
        Ok(())
    }

    /// Whether the snapshot names the place that its version has in the log.
    async fn compare_place(&mut self, snapshot: &StoredSnapshot) -> Result<(), StorageError> {
        let page = AggregatePage {
            key: snapshot.key.clone(),
            after: snapshot.version.saturating_sub(1),
            up_to: snapshot.version,
        };
        let found = self.reader.reads.aggregates(vec![page]).await?;
        for commits in found {
            // An entry that can't be read is in the report already.
            let Ok(commits) = commits else { continue };
            // Its partition is looked at by itself.
            if !commits
                .iter()
                .any(|commit| commit.position == snapshot.position)
            {
                self.misplaced(snapshot);
            }
        }
        Ok(())
    }

    fn misplaced(&mut self, snapshot: &StoredSnapshot) {
        self.report.add(Finding::SnapshotMisplaced {
            aggregate: snapshot.key.to_string(),
            version: snapshot.version,
        });
    }

    /// The aggregate at the snapshot's version, from the log alone; or why it can't be had.
    async fn replay(
        &self,
        definition: &Arc<AggregateDefinition>,
        snapshot: &StoredSnapshot,
    ) -> Result<Result<Loaded, String>, StorageError> {
        let mut loaded = match Loaded::initial(definition, &snapshot.key, 0) {
            Ok(loaded) => loaded,
            Err(error) => return Ok(Err(error.to_string())),
        };
        while loaded.version < snapshot.version {
            let page = AggregatePage {
                key: snapshot.key.clone(),
                after: loaded.version,
                up_to: snapshot.version.min(loaded.version + REPLAY_PAGE),
            };
            let mut pages = self.reader.reads.aggregates(vec![page]).await?;
            let commits = match pages.pop().unwrap_or_else(|| Ok(Vec::new())) {
                Ok(commits) => commits,
                Err(error) => return Ok(Err(error.to_string())),
            };
            if commits.is_empty() {
                return Ok(Err(format!("version {} is missing", loaded.version + 1)));
            }
            for commit in &commits {
                loaded = match loaded.apply(definition, commit) {
                    Ok(loaded) => loaded,
                    Err(error) => return Ok(Err(error.to_string())),
                };
            }
        }
        Ok(Ok(loaded))
    }
}

/// Where the replayed aggregate and its snapshot differ, if they do.
fn first_difference(
    definition: &AggregateDefinition,
    loaded: &Loaded,
    snapshot: &StoredSnapshot,
) -> Option<String> {
    let state = match definition.encode_state(&loaded.state) {
        Ok(state) => exact::difference(&state, &snapshot.state),
        Err(error) => Err(error),
    };
    match state {
        Ok(None) => fact_difference(&loaded.facts, &snapshot.facts).map(str::to_owned),
        Ok(Some(path)) => Some(format!("state{path}")),
        Err(error) => Some(format!("state: {error}")),
    }
}

fn fact_difference(a: &AggregateFacts, b: &AggregateFacts) -> Option<&'static str> {
    [
        ("owner", a.owner == b.owner),
        ("space", a.space == b.space),
        ("deleted", a.deleted == b.deleted),
        ("tags", a.tags == b.tags),
        ("firstOperator", a.first_operator == b.first_operator),
        ("operator", a.operator == b.operator),
        ("firstEventTime", a.first_event_time == b.first_event_time),
        ("eventTime", a.event_time == b.event_time),
        ("eventId", a.event_id == b.event_id),
    ]
    .into_iter()
    .find_map(|(name, same)| (!same).then_some(name))
}
