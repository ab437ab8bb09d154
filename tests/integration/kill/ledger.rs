//! Money and carts as the log's events tell them, by arithmetic of its own.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::support::database::{Key, LogRow};

/// An account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) balance: i64,
    pub(crate) locked: i64,
}

/// All accounts and carts.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: BTreeMap<Key, Account>,
    /// How many of each product are in each cart.
    pub(crate) carts: HashMap<(Key, String), i64>,
    /// What all accounts were created with.
    pub(crate) created: i64,
}

/// The events of a row: name and body.
pub(crate) fn events(row: &LogRow) -> impl Iterator<Item = (&str, &Value)> {
    let events = row.events.as_array().expect("events are an array");
    events.iter().map(|event| {
        let name = event["name"].as_str().expect("an event has a name");
        (name, &event["body"])
    })
}

pub(crate) fn number(body: &Value, field: &str) -> i64 {
    body[field].as_i64().expect("it is a whole number")
}

pub(crate) fn text<'v>(body: &'v Value, field: &str) -> &'v str {
    body[field].as_str().expect("it is a text")
}

impl Ledger {
    /// Takes a row in; those of one aggregate have to come in order.
    ///
    /// # Errors
    /// What the row does that nothing allows.
    pub(crate) fn apply(&mut self, row: &LogRow) -> Result<(), String> {
        for (name, body) in events(row) {
            match row.key.aggregate_type.as_str() {
                "account" => self.apply_to_account(&row.key, name, body)?,
                "cart" => self.apply_to_cart(&row.key, name, body)?,
                other => return Err(format!("an aggregate of type {other}")),
            }
        }
        Ok(())
    }

    fn apply_to_account(&mut self, key: &Key, name: &str, body: &Value) -> Result<(), String> {
        let account = self.accounts.entry(key.clone()).or_default();
        match name {
            "account_created" => {
                account.balance = number(body, "balance");
                self.created += account.balance;
            }
            "amount_locked" => {
                account.balance -= number(body, "amount");
                account.locked += number(body, "amount");
            }
            "amount_unlocked" => {
                account.balance += number(body, "amount");
                account.locked -= number(body, "amount");
            }
            "amount_entered" => account.balance += number(body, "amount"),
            "confirmed" => account.locked -= number(body, "amount"),
            "prepared" => {}
            other => return Err(format!("an event {other}")),
        }
        match account.balance < 0 || account.locked < 0 {
            true => Err(format!("{account:?} after {name}")),
            false => Ok(()),
        }
    }

    fn apply_to_cart(&mut self, key: &Key, name: &str, body: &Value) -> Result<(), String> {
        let (item, is_new) = match name {
            "cart_item_added" => (&body["added"], true),
            "cart_quantity_changed" => (&body["changed"], false),
            other => return Err(format!("an event {other}")),
        };
        let place = (key.clone(), text(item, "productId").to_owned());
        let before = self.carts.insert(place, number(item, "quantity"));
        match before.is_none() == is_new {
            true => Ok(()),
            false => Err(format!("{name} with {before:?} of it in the cart")),
        }
    }

    /// How many of a product are in a cart.
    pub(crate) fn quantity(&self, key: &Key, product: &str) -> i64 {
        let place = (key.clone(), product.to_owned());
        self.carts.get(&place).copied().unwrap_or(0)
    }

    /// What all accounts hold.
    pub(crate) fn money(&self) -> i64 {
        let held = self.accounts.values();
        held.map(|account| account.balance + account.locked).sum()
    }
}
