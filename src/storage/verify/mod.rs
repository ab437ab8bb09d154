//! `wow log verify`: whether the database holds what the rules promise.
//!
//! It takes no locks and holds no long transaction, so it runs beside a node. The log is
//! append-only: what was read of it stays true, and the newest position of each partition is
//! taken once, before its entries are. Memory is bounded by the aggregates of one partition.

mod checkpoints;
mod exact;
mod log;
mod report;
mod requests;
mod snapshots;
mod texts;

use wow_kernel::ports::StorageError;
use wow_kernel::registry::Registry;

use super::reader::StorageReader;
use super::rows::Cells;

pub use report::{Finding, Progress, Report, Step};

/// A verification that is going on.
struct Verification<'v> {
    reader: &'v StorageReader,
    registry: Option<&'v Registry>,
    progress: &'v mut (dyn FnMut(Progress) + Send),
    report: Report,
}

impl StorageReader {
    /// Looks at everything: positions and heads (R80), versions, unique keys, request and
    /// command ids (R44), checkpoints, and snapshots. With a registry, snapshots are compared with the log replayed.
    ///
    /// # Errors
    /// [`StorageError`] where the database can't be read at all; what is wrong with what it holds
    /// is in the report.
    pub async fn verify(
        &self,
        registry: Option<&Registry>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Report, StorageError> {
        let mut verification = Verification {
            reader: self,
            registry,
            progress,
            report: Report::default(),
        };
        verification.files().await?;
        verification.keys().await?;
        verification.log().await?;
        verification.requests().await?;
        verification.checkpoints().await?;
        verification.snapshots().await?;
        Ok(verification.report)
    }
}

impl Verification<'_> {
    fn tell(&mut self, step: Step, done: u64, total: u64) {
        (self.progress)(Progress { step, done, total });
    }

    /// What the database's own check says; it also holds the unique indexes to their table.
    async fn files(&mut self) -> Result<(), StorageError> {
        self.tell(Step::Files, 0, 1);
        for text in self.reader.reads.damages().await? {
            self.report.add(Finding::Files { text });
        }
        self.tell(Step::Files, 1, 1);
        Ok(())
    }

    /// The unique keys hold what no code here checks by itself (R44).
    async fn keys(&mut self) -> Result<(), StorageError> {
        for key in self.reader.missing_keys().await? {
            self.report.add(Finding::KeyMissing { key });
        }
        Ok(())
    }

    async fn requests(&mut self) -> Result<(), StorageError> {
        self.tell(Step::Requests, 0, 1);
        let text = "select tenant_id, aggregate_type, request_id, count(*) from commit_log \
                    group by tenant_id, aggregate_type, request_id having count(*) > 1 limit 1000";
        for row in self.reader.query(text, []).await? {
            let mut cells = Cells::new(&row);
            self.report.add(Finding::RequestTwice {
                tenant: cells.get()?,
                aggregate_type: cells.get()?,
                request_id: cells.get()?,
                times: cells.number()?,
            });
        }
        let text = "select command_id, count(*) from commit_log \
                    group by command_id having count(*) > 1 limit 1000";
        for row in self.reader.query(text, []).await? {
            let mut cells = Cells::new(&row);
            self.report.add(Finding::CommandTwice {
                command_id: cells.get()?,
                times: cells.number()?,
            });
        }
        self.tell(Step::Requests, 1, 1);
        Ok(())
    }
}
