//! Orders, from a customer to a shop: the owner is the customer, the space is the shop.
//!
//! ```text
//! create_order ─▶ CREATED ── pay_order ─▶ PAID ── ship_order ─▶ SHIPPED ── receipt_order ─▶ RECEIVED
//!                 └──── change_address ─────┘
//! ```
//!
//! It shows what an account and a cart don't need: services in decide ([`services`]), rules for
//! owners and roles, spaces, a transformer ([`merge_items`]) and a hook ([`payment::note_overpayment`]).

mod commands;
mod payment;
mod services;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use wow::prelude::*;

use commands::merge_items;
use services::{FlatPrices, FlatStock, Inventory, Pricing};

#[cfg(test)]
pub(crate) use state::{Address, OrderItem};
pub(crate) use state::{Order, OrderEvent};

/// Registers the domain's types.
pub(crate) fn register(registry: RegistryBuilder) -> RegistryBuilder {
    registry.register::<Order>().transform(merge_items)
}

/// Provides the domain's services.
pub(crate) fn provide(services: &mut Services) {
    services.provide::<Arc<dyn Pricing>>(Arc::new(FlatPrices::default()));
    services.provide::<Arc<dyn Inventory>>(Arc::new(FlatStock::default()));
}
