//! The recent requests that a snapshot stores (R41): each is what the log has of it.

use wow_kernel::commit::StoredSnapshot;
use wow_kernel::id::Version;
use wow_kernel::ports::StorageError;
use wow_kernel::recent::{self, RequestRecord, WRITTEN_EVERY};

use super::super::reads::AggregatePage;
use super::{Finding, Verification};

/// How many commits are read at once.
const PAGE: Version = 256;

impl Verification<'_> {
    /// A duplicate is answered from this set without a look at the log, so what it holds has to be
    /// right. What it doesn't hold is looked up: a set that lacks something costs time and no more.
    pub(super) async fn compare_requests(
        &mut self,
        snapshot: &StoredSnapshot,
    ) -> Result<(), StorageError> {
        let written = snapshot.version - snapshot.version % WRITTEN_EVERY;
        let stored = match snapshot.recent_requests.as_deref() {
            None => Vec::new(),
            Some(json) => match recent::read_stored(json) {
                Ok(stored) => stored,
                Err(error) => {
                    self.wrong_requests(snapshot, format!("they can't be read: {error}"));
                    return Ok(());
                }
            },
        };
        if let Some(late) = stored.iter().find(|record| record.version > written) {
            let reason = format!("version {} was not written yet", late.version);
            self.wrong_requests(snapshot, reason);
            return Ok(());
        }
        let first = stored.first().map_or(written, |record| record.version);
        let Some(logged) = self.logged_requests(snapshot, first, written).await? else {
            // What the log lacks is in the report already.
            return Ok(());
        };
        let mut expected = logged.iter().filter(|record| recent::is_kept(record));
        for record in &stored {
            let of_the_log = expected.next();
            if !of_the_log.is_some_and(|logged| is_same(record, logged)) {
                let reason = format!("that of version {} is not the log's", record.version);
                self.wrong_requests(snapshot, reason);
                return Ok(());
            }
        }
        if expected.next().is_some() {
            self.report.warn(Finding::SnapshotRequestsMissing {
                aggregate: snapshot.key.to_string(),
                version: snapshot.version,
                written,
            });
        }
        Ok(())
    }

    /// What the log has of these versions; none where it doesn't have them all.
    async fn logged_requests(
        &self,
        snapshot: &StoredSnapshot,
        first: Version,
        last: Version,
    ) -> Result<Option<Vec<RequestRecord>>, StorageError> {
        let mut logged = Vec::new();
        let mut after = first.saturating_sub(1);
        while after < last {
            let up_to = last.min(after + PAGE);
            let page = AggregatePage {
                key: snapshot.key.clone(),
                after,
                up_to,
            };
            let mut pages = self.reader.reads.aggregates(vec![page]).await?;
            let Some(Ok(commits)) = pages.pop() else {
                return Ok(None);
            };
            if commits.len() as u64 != up_to - after {
                return Ok(None);
            }
            logged.extend(commits.iter().map(RequestRecord::from));
            after = up_to;
        }
        Ok(Some(logged))
    }

    fn wrong_requests(&mut self, snapshot: &StoredSnapshot, reason: String) {
        self.report.add(Finding::SnapshotRequests {
            aggregate: snapshot.key.to_string(),
            version: snapshot.version,
            reason,
        });
    }
}

fn is_same(a: &RequestRecord, b: &RequestRecord) -> bool {
    let result = |record: &RequestRecord| record.result.as_deref().map(|raw| raw.get().to_owned());
    a.version == b.version
        && a.request_id == b.request_id
        && a.command_id == b.command_id
        && a.command_type == b.command_type
        && a.principal == b.principal
        && a.owner == b.owner
        && result(a) == result(b)
}
