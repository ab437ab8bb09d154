//! What can be asked of an account, and what it decides.
//!
//! Two rules keep sums within `i64`: only an entry adds money to an account, and it keeps balance
//! and locked together within the type; all others move or take what is there.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::super::not_blank;
use super::state::{Account, AccountEvent};

/// Less is locked than should leave.
pub(super) const INSUFFICIENT_LOCKED: &str = "account.insufficient-locked";

type Decided = Result<Decision<AccountEvent>, Rejection>;

/// Opens an account with money in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(creates, pure, validate)]
pub(crate) struct CreateAccount {
    #[garde(custom(not_blank))]
    pub(crate) name: String,
    #[garde(range(min = 0))]
    pub(crate) balance: i64,
}

impl Decide<CreateAccount> for Account {
    async fn decide(&self, command: &CreateAccount, _context: &DecideContext) -> Decided {
        let (name, balance) = (command.name.clone(), command.balance);
        Ok(Decision::event(AccountEvent::AccountCreated {
            name,
            balance,
        }))
    }
}

/// Begins a transfer to another account.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
pub(crate) struct Prepare {
    #[garde(custom(not_blank))]
    pub(crate) to: String,
    #[garde(range(min = 1))]
    pub(crate) amount: i64,
}

impl Decide<Prepare> for Account {
    async fn decide(&self, command: &Prepare, _context: &DecideContext) -> Decided {
        if self.frozen {
            return Err(frozen());
        }
        if command.to == self.id {
            let message = "an account can't transfer to itself";
            return Err(Rejection::new("account.same-account", message));
        }
        self.check_balance(command.amount)?;
        let (to, amount) = (command.to.clone(), command.amount);
        Ok(Decision::events([
            AccountEvent::AmountLocked { amount },
            AccountEvent::Prepared { to, amount },
        ]))
    }
}

/// Brings in the money of a transfer. A frozen account says so in an event, not by refusing:
/// the source is waiting for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    #[garde(custom(not_blank))]
    pub(crate) source_id: String,
    #[garde(range(min = 1))]
    pub(crate) amount: i64,
}

impl Decide<Entry> for Account {
    async fn decide(&self, command: &Entry, _context: &DecideContext) -> Decided {
        let (source_id, amount) = (command.source_id.clone(), command.amount);
        if self.frozen {
            return Ok(Decision::event(AccountEvent::EntryFailed {
                source_id,
                amount,
            }));
        }
        self.balance_amount
            .checked_add(amount)
            .and_then(|balance| balance.checked_add(self.locked_amount))
            .ok_or_else(overflow)?;
        Ok(Decision::event(AccountEvent::AmountEntered {
            source_id,
            amount,
        }))
    }
}

/// Ends a transfer whose money has arrived. The saga's is taken even where less is locked: refused,
/// the money would be in both accounts. Anyone else's can only give up what is locked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
pub(crate) struct Confirm {
    #[garde(range(min = 1))]
    pub(crate) amount: i64,
}

impl Decide<Confirm> for Account {
    async fn decide(&self, command: &Confirm, context: &DecideContext) -> Decided {
        let amount = command.amount;
        if !context.principal().is_service() {
            self.check_locked(amount)?;
        }
        self.locked_amount
            .checked_sub(amount)
            .ok_or_else(overflow)?;
        Ok(Decision::event(AccountEvent::Confirmed { amount }))
    }
}

/// Holds money back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
pub(crate) struct LockAmount {
    #[garde(range(min = 1))]
    pub(crate) amount: i64,
}

impl Decide<LockAmount> for Account {
    async fn decide(&self, command: &LockAmount, _context: &DecideContext) -> Decided {
        let amount = command.amount;
        self.check_balance(amount)?;
        Ok(Decision::event(AccountEvent::AmountLocked { amount }))
    }
}

/// Gives back what was held.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
pub(crate) struct UnlockAmount {
    #[garde(range(min = 1))]
    pub(crate) amount: i64,
}

impl Decide<UnlockAmount> for Account {
    async fn decide(&self, command: &UnlockAmount, _context: &DecideContext) -> Decided {
        let amount = command.amount;
        self.check_locked(amount)?;
        Ok(Decision::event(AccountEvent::AmountUnlocked { amount }))
    }
}

/// Stops an account from sending and taking money.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure)]
pub(crate) struct FreezeAccount {
    pub(crate) reason: String,
}

impl Decide<FreezeAccount> for Account {
    async fn decide(&self, command: &FreezeAccount, _context: &DecideContext) -> Decided {
        if self.frozen {
            return Err(frozen());
        }
        let reason = command.reason.clone();
        Ok(Decision::event(AccountEvent::AccountFrozen { reason }))
    }
}

/// Lets a frozen account go on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure)]
pub(crate) struct UnfreezeAccount {
    pub(crate) reason: String,
}

impl Decide<UnfreezeAccount> for Account {
    async fn decide(&self, command: &UnfreezeAccount, _context: &DecideContext) -> Decided {
        if !self.frozen {
            return Err(Rejection::new(
                "account.not-frozen",
                "the account is not frozen",
            ));
        }
        let reason = command.reason.clone();
        Ok(Decision::event(AccountEvent::AccountUnfrozen { reason }))
    }
}

impl Account {
    fn check_balance(&self, amount: i64) -> Result<(), Rejection> {
        if self.balance_amount < amount {
            let message = "the account has too little balance";
            return Err(Rejection::new("account.insufficient-balance", message));
        }
        Ok(())
    }

    fn check_locked(&self, amount: i64) -> Result<(), Rejection> {
        if self.locked_amount < amount {
            let message = "the account has less locked";
            return Err(Rejection::new(INSUFFICIENT_LOCKED, message));
        }
        Ok(())
    }
}

fn frozen() -> Rejection {
    Rejection::new("account.frozen", "the account is frozen")
}

fn overflow() -> Rejection {
    Rejection::new(
        "account.amount-overflow",
        "the amount is more than the account can hold",
    )
}
