//! Checkpoints: none is ahead of its log, and none holds what is never written.

use wow_kernel::ports::StorageError;

use super::super::rows::Cells;
use super::{Finding, Step, Verification};

/// A row of `checkpoint` with the head of its partition, as it is.
struct Row {
    subscription: String,
    partition: i64,
    position: i64,
    epoch: i64,
    generation: i64,
    head: i64,
}

impl Row {
    fn read(cells: &mut Cells<'_>) -> Result<Self, StorageError> {
        Ok(Self {
            subscription: cells.get()?,
            partition: cells.number()?,
            position: cells.number()?,
            epoch: cells.number()?,
            generation: cells.number()?,
            head: cells.number()?,
        })
    }
}

impl Verification<'_> {
    pub(super) async fn checkpoints(&mut self) -> Result<(), StorageError> {
        self.tell(Step::Checkpoints, 0, 1);
        // One statement sees one moment: an entry is never younger than a checkpoint behind it.
        let text = "select c.subscription, c.partition_no, c.position, c.epoch, c.generation, \
                    coalesce(p.head, 0) from checkpoint as c \
                    left join log_partition as p on p.partition_no = c.partition_no";
        for row in self.reader.query(text, []).await? {
            self.report.checkpoints += 1;
            match Row::read(&mut Cells::new(&row)) {
                Ok(row) => self.checkpoint(row),
                Err(error) => self.report.add(Finding::Odd {
                    place: "a checkpoint".to_owned(),
                    column: "row",
                    reason: error.to_string(),
                }),
            }
        }
        self.tell(Step::Checkpoints, 1, 1);
        Ok(())
    }

    fn checkpoint(&mut self, row: Row) {
        let Row {
            subscription,
            partition,
            position,
            head,
            ..
        } = row;
        let count = i64::from(self.reader.meta().partitions);
        let mut odd = |column, reason| {
            self.report.add(Finding::Odd {
                place: format!("checkpoint of {subscription} in partition {partition}"),
                column,
                reason,
            });
        };
        let mut is_odd = false;
        for (column, number) in [
            ("position", position),
            ("epoch", row.epoch),
            ("generation", row.generation),
        ] {
            if number < 0 {
                odd(column, format!("{number} is negative"));
                is_odd = true;
            }
        }
        if !(0..count).contains(&partition) {
            odd("partition_no", "this log has no such partition".to_owned());
            is_odd = true;
        }
        let numbers = (
            u32::try_from(partition),
            u64::try_from(position),
            u64::try_from(head),
        );
        if let (Ok(partition), Ok(position), Ok(head)) = numbers
            && position > head
            && !is_odd
        {
            self.report.add(Finding::CheckpointBeyondHead {
                subscription,
                partition,
                position,
                head,
            });
        }
    }
}
