//! An account that only counts, whose events are as large as is usual.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(tenant = "(0)", commands(Enter))]
pub(crate) struct Account {
    pub(crate) balance: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(rename_all_fields = "camelCase")]
pub(crate) enum AccountEvent {
    AmountEntered {
        source_id: String,
        amount: i64,
        text: String,
    },
}

/// Enters an amount.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Enter {
    pub(crate) source_id: String,
    pub(crate) amount: i64,
    pub(crate) text: String,
}

impl Evolve for Account {
    type Event = AccountEvent;

    fn evolve(&mut self, event: &AccountEvent) {
        let AccountEvent::AmountEntered { amount, .. } = event;
        self.balance += amount;
    }
}

impl Decide<Enter> for Account {
    async fn decide(
        &self,
        command: &Enter,
        _context: &DecideContext,
    ) -> Result<Decision<AccountEvent>, Rejection> {
        let Enter {
            source_id,
            amount,
            text,
        } = command.clone();
        Ok(Decision::event(AccountEvent::AmountEntered {
            source_id,
            amount,
            text,
        }))
    }
}

/// A command as clients send it.
pub(crate) fn enter() -> Enter {
    Enter {
        source_id: "0190163e-9d6a-7e3c-8d2a-5b1f6c1d2e3f".to_owned(),
        amount: 1,
        text: super::commits::filler(),
    }
}
