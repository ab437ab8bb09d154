//! Accounts, and transfers of money between them.
//!
//! A transfer is three commands to two accounts, and between them anything may stop:
//!
//! ```text
//! client       ── prepare ─────────▶ source   amount_locked, prepared
//! TransferSaga ── entry ───────────▶ target   amount_entered; entry_failed where it is frozen
//! TransferSaga ── confirm ─────────▶ source   confirmed
//!         or   ── unlock_amount ───▶ source   amount_unlocked
//! ```
//!
//! Money is conserved: at rest, the sum of balance and locked over all accounts is what they
//! were created with. What is locked for a transfer leaves its account only once it has arrived,
//! and goes back where the target refuses it for good.
//!
//! The saga's commands are commands like any other, and whoever may send commands may send them:
//! `access.mode` and an `Authorizer` say who that is. A client's `entry` is a transfer that was
//! never prepared, and its source pays for it with a negative lock, which the saga's `confirm` is
//! never refused for: refused, the money would be in both accounts. A client's own `confirm` is
//! refused beyond what is locked, and gives up what it takes.

mod commands;
mod state;
#[cfg(test)]
mod tests;
mod transfer_saga;

use wow::prelude::*;

pub(crate) use commands::CreateAccount;
use state::Account;
use transfer_saga::TransferSaga;

/// Registers the domain's types.
pub(crate) fn register(registry: RegistryBuilder) -> RegistryBuilder {
    registry.register::<Account>().saga(TransferSaga)
}
