//! Who shares the partitions, for people: members, leases, and how far each partition has come.

use std::collections::HashMap;

use wow_kernel::id::{PartitionNo, Position};
use wow_kernel::ports::{Member, PartitionLease, StorageError};
use wow_migrations::names::{checkpoint, log_partition};

use super::leases;
use super::reader::StorageReader;
use super::rows::Cells;

/// Members and partitions as storage has them at one moment.
#[derive(Debug, Clone)]
pub struct Ownership {
    /// Every member's row, expired ones of the last day among them.
    pub members: Vec<Member>,
    /// The leases of the partitions that were ever taken.
    pub leases: HashMap<PartitionNo, PartitionLease>,
    /// How far each partition has come, in their order.
    pub partitions: Vec<PartitionReach>,
}

/// How far a partition has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionReach {
    /// The partition.
    pub partition: PartitionNo,
    /// The position of its newest entry; zero when it has none.
    pub head: Position,
    /// Where the last of its subscriptions is; none before the first has saved its place.
    pub handled: Option<Position>,
}

impl StorageReader {
    /// Who shares the partitions.
    ///
    /// # Errors
    /// [`StorageError`].
    pub async fn ownership(&self) -> Result<Ownership, StorageError> {
        let (mut members, leases) = leases::view(self.database()).await?;
        members.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
        let text = format!(
            "select p.partition_no, p.head, (select min(c.position) from {checkpoints} as c \
             where c.partition_no = p.partition_no) from {heads} as p order by p.partition_no",
            checkpoints = checkpoint::TABLE,
            heads = log_partition::TABLE,
        );
        let mut partitions = Vec::new();
        for row in self.query(&text, []).await? {
            let mut cells = Cells::new(&row);
            let (partition, head) = (PartitionNo(cells.number()?), cells.number()?);
            let handled: Option<i64> = cells.get()?;
            let handled = handled.map(Position::try_from).transpose();
            partitions.push(PartitionReach {
                partition,
                head,
                handled: handled
                    .map_err(|_| StorageError::Corrupt("a checkpoint is negative".to_owned()))?,
            });
        }
        let leases = leases.into_iter().map(|lease| (lease.partition, lease));
        Ok(Ownership {
            members,
            leases: leases.collect(),
            partitions,
        })
    }
}
