//! The account: what it is, and what happens to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::commands::{
    Confirm, CreateAccount, Entry, FreezeAccount, LockAmount, Prepare, UnfreezeAccount,
    UnlockAmount,
};

/// An account. Amounts are whole numbers of the smallest unit.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(
    tenant = "(0)",
    commands(
        CreateAccount,
        Prepare,
        Entry,
        Confirm,
        LockAmount,
        UnlockAmount,
        FreezeAccount,
        UnfreezeAccount,
    )
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    #[aggregate(id)]
    pub(crate) id: String,
    pub(crate) name: String,
    /// What can be spent.
    pub(crate) balance_amount: i64,
    /// What is held back for transfers under way.
    pub(crate) locked_amount: i64,
    /// Whether it neither sends nor takes money.
    pub(crate) frozen: bool,
}

/// What happens to an account.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(rename_all_fields = "camelCase")]
pub(crate) enum AccountEvent {
    AccountCreated { name: String, balance: i64 },
    AmountLocked { amount: i64 },
    Prepared { to: String, amount: i64 },
    AmountEntered { source_id: String, amount: i64 },
    EntryFailed { source_id: String, amount: i64 },
    Confirmed { amount: i64 },
    AmountUnlocked { amount: i64 },
    AccountFrozen { reason: String },
    AccountUnfrozen { reason: String },
}

impl Evolve for Account {
    type Event = AccountEvent;

    // Deciding has made sure that no sum overflows.
    fn evolve(&mut self, event: &AccountEvent) {
        match event {
            AccountEvent::AccountCreated { name, balance } => {
                self.name.clone_from(name);
                self.balance_amount = *balance;
            }
            AccountEvent::AmountLocked { amount } => {
                self.balance_amount -= amount;
                self.locked_amount += amount;
            }
            AccountEvent::AmountUnlocked { amount } => {
                self.locked_amount -= amount;
                self.balance_amount += amount;
            }
            AccountEvent::AmountEntered { amount, .. } => self.balance_amount += amount,
            AccountEvent::Confirmed { amount } => self.locked_amount -= amount,
            AccountEvent::AccountFrozen { .. } => self.frozen = true,
            AccountEvent::AccountUnfrozen { .. } => self.frozen = false,
            AccountEvent::Prepared { .. } | AccountEvent::EntryFailed { .. } => {}
        }
    }
}
