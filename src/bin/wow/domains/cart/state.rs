//! The cart: what is in it, and what happens to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::commands::{AddCartItem, ChangeQuantity, RemoveCartItem, ViewCart};

/// A cart. Each product is in it once.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(
    tenant = "(0)",
    owner = "aggregate_id",
    commands(AddCartItem, ChangeQuantity, RemoveCartItem, ViewCart)
)]
pub(crate) struct Cart {
    #[aggregate(id)]
    pub(crate) id: String,
    pub(crate) items: Vec<CartItem>,
    /// How many products are in it.
    pub(crate) size: usize,
}

/// How much of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CartItem {
    pub(crate) product_id: String,
    pub(crate) quantity: i64,
}

/// What happens to a cart.
#[expect(
    clippy::enum_variant_names,
    reason = "the log names its events in full"
)]
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(rename_all_fields = "camelCase")]
pub(crate) enum CartEvent {
    CartItemAdded { added: CartItem },
    CartQuantityChanged { changed: CartItem },
    CartItemRemoved { product_ids: Vec<String> },
}

impl Cart {
    /// What is in it of a product.
    pub(super) fn item(&self, product_id: &str) -> Option<&CartItem> {
        self.items.iter().find(|item| item.product_id == product_id)
    }
}

impl Evolve for Cart {
    type Event = CartEvent;

    fn evolve(&mut self, event: &CartEvent) {
        match event {
            CartEvent::CartItemAdded { added } => self.items.push(added.clone()),
            CartEvent::CartQuantityChanged { changed } => {
                let same = |item: &&mut CartItem| item.product_id == changed.product_id;
                if let Some(item) = self.items.iter_mut().find(same) {
                    item.quantity = changed.quantity;
                }
            }
            CartEvent::CartItemRemoved { product_ids } => {
                self.items
                    .retain(|item| !product_ids.contains(&item.product_id));
            }
        }
        self.size = self.items.len();
    }
}
