//! What can be asked of a cart, and what it decides.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::super::not_blank;
use super::state::{Cart, CartEvent, CartItem};

/// How many products a cart takes.
pub(super) const ITEMS_MAX: usize = 100;

type Decided = Result<Decision<CartEvent>, Rejection>;

/// Puts more of a product into the cart.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(upserts, pure, validate, method = "POST")]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddCartItem {
    #[garde(custom(not_blank))]
    pub(crate) product_id: String,
    #[garde(range(min = 1))]
    #[serde(default = "one")]
    pub(crate) quantity: i64,
}

fn one() -> i64 {
    1
}

impl Decide<AddCartItem> for Cart {
    async fn decide(&self, command: &AddCartItem, _context: &DecideContext) -> Decided {
        let (product_id, quantity) = (command.product_id.clone(), command.quantity);
        if let Some(item) = self.item(&product_id) {
            let quantity = item.quantity.checked_add(quantity).ok_or_else(|| {
                Rejection::new("cart.quantity-overflow", "the cart can't hold that many")
            })?;
            let changed = CartItem {
                product_id,
                quantity,
            };
            return Ok(Decision::event(CartEvent::CartQuantityChanged { changed }));
        }
        if self.items.len() >= ITEMS_MAX {
            let message = format!("a cart takes {ITEMS_MAX} products");
            return Err(Rejection::new("cart.full", message));
        }
        let added = CartItem {
            product_id,
            quantity,
        };
        Ok(Decision::event(CartEvent::CartItemAdded { added }))
    }
}

/// Sets how much of a product is in the cart.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeQuantity {
    #[garde(custom(not_blank))]
    pub(crate) product_id: String,
    #[garde(range(min = 1))]
    pub(crate) quantity: i64,
}

impl Decide<ChangeQuantity> for Cart {
    async fn decide(&self, command: &ChangeQuantity, _context: &DecideContext) -> Decided {
        let (product_id, quantity) = (command.product_id.clone(), command.quantity);
        if self.item(&product_id).is_none() {
            return Err(Rejection::new(
                "cart.item-missing",
                "the product is not in the cart",
            ));
        }
        let changed = CartItem {
            product_id,
            quantity,
        };
        Ok(Decision::event(CartEvent::CartQuantityChanged { changed }))
    }
}

/// Takes products out of the cart. Those that aren't in it any more are no reason to refuse.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoveCartItem {
    #[garde(length(min = 1), inner(custom(not_blank)))]
    pub(crate) product_ids: Vec<String>,
}

impl Decide<RemoveCartItem> for Cart {
    async fn decide(&self, command: &RemoveCartItem, _context: &DecideContext) -> Decided {
        let product_ids = command.product_ids.clone();
        Ok(Decision::event(CartEvent::CartItemRemoved { product_ids }))
    }
}

/// Looks at the cart: nothing happens to it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub(crate) struct ViewCart {}

impl Decide<ViewCart> for Cart {
    async fn decide(&self, _command: &ViewCart, _context: &DecideContext) -> Decided {
        Ok(Decision::none())
    }
}
