//! A shopping cart for each customer. The owner's id is the cart's id, so nobody names carts:
//! `POST /owner/ann/cart/add_cart_item` is Ann's, and the first one makes it.
//!
//! [`CartSaga`] takes what was ordered out of the cart it was ordered from.

mod cart_saga;
mod commands;
mod state;
#[cfg(test)]
mod tests;

use wow::prelude::*;

use cart_saga::CartSaga;
pub(crate) use commands::AddCartItem;
use state::Cart;

/// Registers the domain's types. The saga follows orders, which register themselves.
pub(crate) fn register(registry: RegistryBuilder) -> RegistryBuilder {
    registry.register::<Cart>().saga(CartSaga)
}
