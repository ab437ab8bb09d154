//! The log, entry by entry.

use std::collections::HashMap;

use sea_orm::Value;
use wow_kernel::commit::Commit;
use wow_kernel::id::{AggregateKey, EpochMillis, PartitionNo, Position, Version};
use wow_kernel::partition::partition_of;
use wow_kernel::ports::StorageError;

use super::super::reads::PartitionPage;
use super::super::rows::Cells;
use super::texts::{odd_columns, time_fault};
use super::{Finding, Step, Verification};

/// How many entries are read at once.
const PAGE: Position = 512;

/// One partition, while its entries go by.
struct Scan {
    partition: PartitionNo,
    /// The position of the last entry.
    position: Position,
    /// The time of the last entry.
    time: EpochMillis,
    /// The newest version of each aggregate so far.
    versions: HashMap<AggregateKey, Version>,
}

impl Verification<'_> {
    /// Positions are contiguous from 1 and end at the head (R80), every entry can be read and
    /// lies where its aggregate does, and the versions of each aggregate are contiguous from 1 in
    /// the order of positions.
    pub(super) async fn log(&mut self) -> Result<(), StorageError> {
        let partitions = self.heads().await?;
        let total = partitions.iter().map(|(_, newest)| newest).sum();
        self.tell(Step::Log, 0, total);
        for (partition, newest) in partitions {
            self.partition(partition, newest, total).await?;
        }
        self.strays().await
    }

    /// Each partition with its newest position; head and newest entry are seen at one moment.
    async fn heads(&mut self) -> Result<Vec<(PartitionNo, Position)>, StorageError> {
        let text = "select p.partition_no, p.head, (select coalesce(max(c.position), 0) \
                    from commit_log as c where c.partition_no = p.partition_no) \
                    from log_partition as p order by p.partition_no";
        let mut partitions = Vec::new();
        for row in self.reader.query(text, []).await? {
            let mut cells = Cells::new(&row);
            let (partition, head, newest): (i64, i64, i64) =
                (cells.number()?, cells.number()?, cells.number()?);
            let Ok(number) = u32::try_from(partition) else {
                self.odd_head(partition, "partition_no", partition);
                continue;
            };
            // Entries at no position are told of with the strays.
            let newest = newest.max(0).unsigned_abs();
            match u64::try_from(head) {
                Err(_) => self.odd_head(partition, "head", head),
                Ok(head) if head != newest => self.report.add(Finding::HeadDiffers {
                    partition: number,
                    head,
                    newest,
                }),
                Ok(_) => {}
            }
            partitions.push((PartitionNo(number), newest));
        }
        self.headless(&mut partitions).await?;
        Ok(partitions)
    }

    fn odd_head(&mut self, partition: i64, column: &'static str, number: i64) {
        self.report.add(Finding::Odd {
            place: format!("head of partition {partition}"),
            column,
            reason: format!("{number} is negative"),
        });
    }

    /// Adds the partitions that have entries and no head.
    async fn headless(
        &mut self,
        partitions: &mut Vec<(PartitionNo, Position)>,
    ) -> Result<(), StorageError> {
        let text = "select c.partition_no, max(c.position) from commit_log as c \
                    where c.partition_no >= 0 and c.partition_no < $1 and c.position > 0 \
                    and not exists (select 1 from log_partition as p \
                    where p.partition_no = c.partition_no) \
                    group by c.partition_no order by c.partition_no";
        let count = Value::from(i64::from(self.reader.meta().partitions));
        for row in self.reader.query(text, [count]).await? {
            let mut cells = Cells::new(&row);
            let (partition, newest) = (cells.number()?, cells.number()?);
            self.report.add(Finding::HeadMissing { partition });
            partitions.push((PartitionNo(partition), newest));
        }
        Ok(())
    }

    async fn partition(
        &mut self,
        partition: PartitionNo,
        newest: Position,
        total: u64,
    ) -> Result<(), StorageError> {
        let mut scan = Scan {
            partition,
            position: 0,
            time: 0,
            versions: HashMap::new(),
        };
        let mut after = 0;
        while after < newest {
            let up_to = newest.min(after + PAGE);
            match self.page(partition, after, up_to).await {
                Ok(commits) => commits
                    .iter()
                    .for_each(|commit| self.entry(&mut scan, commit)),
                Err(StorageError::Corrupt(_)) => {
                    self.entry_by_entry(&mut scan, after, up_to).await?
                }
                Err(error) => return Err(error),
            }
            after = up_to;
            self.tell(Step::Log, self.report.entries, total);
        }
        self.report.aggregates += scan.versions.len() as u64;
        Ok(())
    }

    async fn page(
        &self,
        partition: PartitionNo,
        after: Position,
        up_to: Position,
    ) -> Result<Vec<Commit>, StorageError> {
        let page = PartitionPage {
            partition,
            after,
            up_to,
        };
        let mut pages = self.reader.reads.partitions(vec![page]).await?;
        pages.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Reads a page of which some entry is unreadable, to name it.
    async fn entry_by_entry(
        &mut self,
        scan: &mut Scan,
        after: Position,
        up_to: Position,
    ) -> Result<(), StorageError> {
        for position in after + 1..=up_to {
            match self.page(scan.partition, position - 1, position).await {
                Ok(commits) => commits.iter().for_each(|commit| self.entry(scan, commit)),
                Err(StorageError::Corrupt(reason)) => {
                    self.report.entries += 1;
                    // It is there, so it leaves no gap.
                    scan.position = position;
                    self.report.add(Finding::EntryUnreadable {
                        partition: scan.partition.0,
                        position,
                        reason,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn entry(&mut self, scan: &mut Scan, commit: &Commit) {
        self.report.entries += 1;
        let expected = scan.position + 1;
        if commit.position != expected {
            self.report.add(Finding::PositionGap {
                partition: scan.partition.0,
                expected,
                found: commit.position,
            });
        }
        scan.position = commit.position;
        self.texts_and_time(scan, commit);

        let placed = partition_of(&commit.key, self.reader.meta().partitions);
        if placed != scan.partition {
            self.report.add(Finding::Misplaced {
                aggregate: commit.key.to_string(),
                version: commit.version,
                expected: placed.0,
                found: scan.partition.0,
            });
        }

        let newest = scan.versions.entry(commit.key.clone()).or_default();
        let expected = *newest + 1;
        *newest = commit.version;
        if commit.version != expected {
            self.report.add(Finding::VersionGap {
                aggregate: commit.key.to_string(),
                expected,
                found: commit.version,
            });
        }
    }

    fn texts_and_time(&mut self, scan: &mut Scan, commit: &Commit) {
        let (partition, position) = (scan.partition.0, commit.position);
        for (column, reason) in odd_columns(commit) {
            self.report.add(Finding::Odd {
                place: format!("partition {partition} position {position}"),
                column,
                reason,
            });
        }
        if commit.committed_at < scan.time {
            self.report.warn(Finding::TimeStepsBack {
                partition,
                position,
                time: commit.committed_at,
                before: scan.time,
            });
        }
        // What is no time is no measure for those behind it.
        if time_fault(commit.committed_at).is_none() {
            scan.time = commit.committed_at;
        }
    }

    async fn strays(&mut self) -> Result<(), StorageError> {
        let text = "select count(*) from commit_log \
                    where partition_no < 0 or partition_no >= $1 or position < 1";
        let count = Value::from(i64::from(self.reader.meta().partitions));
        for row in self.reader.query(text, [count]).await? {
            let entries = Cells::new(&row).number()?;
            if entries > 0 {
                self.report.add(Finding::StrayPartition { entries });
            }
        }
        Ok(())
    }
}
