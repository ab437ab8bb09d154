//! Taking the entries that continue a runner's place: from the feed where they are there, from
//! the log where they aren't (R80).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use wow_kernel::commit::{Commit, StateView};
use wow_kernel::id::{PartitionNo, Position};
use wow_kernel::ports::StorageError;

use crate::feed::Next;
use crate::shared::Shared;

/// How long a hole in the feed may be a lane that is about to offer its commit.
const SETTLE: Duration = Duration::from_millis(5);

/// An entry of the log, with the state after it where the lane that made it handed it over.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    View(StateView),
    Stored(Arc<Commit>),
}

impl Entry {
    pub(crate) fn commit(&self) -> &Arc<Commit> {
        match self {
            Self::View(view) => &view.commit,
            Self::Stored(commit) => commit,
        }
    }
}

/// The entries of one partition after a position.
#[derive(Debug)]
pub(crate) struct Follower {
    shared: Arc<Shared>,
    pub(crate) partition: PartitionNo,
    /// Its place in the partition's feed.
    place: usize,
}

impl Follower {
    /// A follower that has come to a position.
    pub(crate) fn new(shared: &Arc<Shared>, partition: PartitionNo, position: Position) -> Self {
        Self {
            shared: Arc::clone(shared),
            partition,
            place: shared.feeds.of(partition).join(position),
        }
    }

    /// The entries that continue a position, in order and without a hole: at least one, and at
    /// most so many. Waits where there are none.
    pub(crate) async fn next(
        &self,
        position: Position,
        most: usize,
    ) -> Result<Vec<Entry>, StorageError> {
        let feed = self.shared.feeds.of(self.partition);
        loop {
            feed.grown_beyond(position).await;
            let missing = match feed.after(self.place, position, most) {
                Next::Views(views) => return Ok(of_views(views)),
                Next::Hole(missing) => missing.min(most),
            };
            // Near the head, the lane that has committed what is missing may be about to offer it.
            if feed.head() - position <= most as Position {
                let continued = pin!(feed.continued(self.place, position, most));
                let settled = self.shared.clock.sleep(SETTLE);
                if let Either::Left((views, _)) = select(continued, settled).await {
                    return Ok(of_views(views));
                }
            }
            let stored = self.read(position, missing).await?;
            if !stored.is_empty() {
                return Ok(stored);
            }
            // The head says more than the log shows yet.
            self.shared.clock.sleep(self.shared.limits.poll).await;
        }
    }

    async fn read(&self, position: Position, most: usize) -> Result<Vec<Entry>, StorageError> {
        let commits = self
            .shared
            .kernel
            .log
            .read_partition(self.partition, position, most)
            .await?;
        let expected = position + 1;
        if let Some(first) = commits.first().filter(|first| first.position != expected) {
            let found = first.position;
            return Err(StorageError::Corrupt(format!(
                "partition {} has no position {expected}, {found} follows",
                self.partition
            )));
        }
        Ok(commits
            .into_iter()
            .map(|commit| Entry::Stored(Arc::new(commit)))
            .collect())
    }
}

fn of_views(views: Vec<StateView>) -> Vec<Entry> {
    views.into_iter().map(Entry::View).collect()
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.feeds.of(self.partition).leave(self.place);
    }
}
