//! Brings transfers to their end.

use wow::prelude::*;

use super::commands::{Confirm, Entry, INSUFFICIENT_LOCKED, UnlockAmount};
use super::state::{Account, AccountEvent};

/// Moves what a source has prepared into the target, and tells the source what came of it.
pub(crate) struct TransferSaga;

impl Saga for TransferSaga {
    type Aggregate = Account;
    const NAME: &'static str = "TransferSaga";

    fn handle(&self, event: &AccountEvent, entry: &SagaEntry<'_, Account>) -> Vec<SagaCommand> {
        match event {
            AccountEvent::Prepared { to, amount } => {
                let source_id = entry.state.id.clone();
                let amount = *amount;
                vec![SagaCommand::to(to, Entry { source_id, amount })]
            }
            AccountEvent::AmountEntered { source_id, amount } => {
                vec![SagaCommand::to(source_id, Confirm { amount: *amount })]
            }
            AccountEvent::EntryFailed { source_id, amount } => {
                vec![SagaCommand::to(source_id, UnlockAmount { amount: *amount })]
            }
            _ => Vec::new(),
        }
    }

    fn on_rejected(
        &self,
        event: &AccountEvent,
        entry: &SagaEntry<'_, Account>,
        rejected: &RejectedCommand<'_>,
    ) -> Option<Vec<SagaCommand>> {
        match event {
            // Whatever the target's reason, the money never left.
            AccountEvent::Prepared { amount, .. } => {
                let source = &entry.state.id;
                Some(vec![SagaCommand::to(
                    source,
                    UnlockAmount { amount: *amount },
                )])
            }
            // No transfer of ours led here: a client's own entry named a source that isn't
            // there, or unlocked what it had locked itself. Nothing is held anywhere.
            AccountEvent::AmountEntered { .. } | AccountEvent::EntryFailed { .. }
                if has_no_lock(rejected.error) =>
            {
                Some(Vec::new())
            }
            // The source can't take it, for it was deleted: an operator has to recover it.
            _ => None,
        }
    }
}

fn has_no_lock(error: &CommandError) -> bool {
    match error {
        CommandError::NotFound | CommandError::IdentityInvalid { .. } => true,
        CommandError::Rejected(rejection) => rejection.code == INSUFFICIENT_LOCKED,
        _ => false,
    }
}
