//! Empties carts of what was ordered from them.

use wow::prelude::*;

use super::super::order::{Order, OrderEvent};
use super::commands::RemoveCartItem;

/// Takes what was ordered out of the customer's cart.
pub(crate) struct CartSaga;

impl Saga for CartSaga {
    type Aggregate = Order;
    const NAME: &'static str = "CartSaga";

    fn handle(&self, event: &OrderEvent, entry: &SagaEntry<'_, Order>) -> Vec<SagaCommand> {
        let OrderEvent::OrderCreated {
            items,
            from_cart: true,
            ..
        } = event
        else {
            return Vec::new();
        };
        let product_ids = items.iter().map(|item| item.product_id.clone()).collect();
        let customer = entry.identity.owner.as_str();
        // An order lies in the space of its shop, a cart in none.
        vec![SagaCommand::to_owner(customer, RemoveCartItem { product_ids }).space("")]
    }

    fn on_rejected(
        &self,
        _event: &OrderEvent,
        _entry: &SagaEntry<'_, Order>,
        _rejected: &RejectedCommand<'_>,
    ) -> Option<Vec<SagaCommand>> {
        // The order stands, whatever its cart says: there may be none any more.
        Some(Vec::new())
    }
}
