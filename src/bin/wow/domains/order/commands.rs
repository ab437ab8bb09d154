//! What can be asked of an order, and what it decides. Paying has a file of its own.

use std::sync::Arc;

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::services::{Inventory, Pricing};
use super::state::{Address, Order, OrderEvent, OrderItem, OrderStatus};

pub(super) type Decided = Result<Decision<OrderEvent>, Rejection>;

/// Places an order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(creates, validate, action = "")]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateOrder {
    #[garde(length(min = 1), dive)]
    pub(crate) items: Vec<OrderItem>,
    #[garde(skip)]
    pub(crate) address: Address,
    /// Whether the items come from the customer's cart, and leave it.
    #[garde(skip)]
    #[serde(default)]
    pub(crate) from_cart: bool,
}

/// A transformer: items of one product at one price become one, so that prices and stock are
/// asked once for each product, and for all of it.
pub(super) fn merge_items(
    mut command: CreateOrder,
    _context: &TransformContext<'_>,
) -> Result<CreateOrder, Rejection> {
    let mut merged: Vec<OrderItem> = Vec::with_capacity(command.items.len());
    for item in command.items {
        let same = |known: &&mut OrderItem| {
            known.product_id == item.product_id && known.price == item.price
        };
        match merged.iter_mut().find(same) {
            Some(known) => {
                let quantity = known.quantity.checked_add(item.quantity);
                known.quantity = quantity.ok_or_else(overflow)?;
            }
            None => merged.push(item),
        }
    }
    command.items = merged;
    Ok(command)
}

impl Decide<CreateOrder> for Order {
    async fn decide(&self, command: &CreateOrder, context: &DecideContext) -> Decided {
        let pricing = context.service::<Arc<dyn Pricing>>()?;
        let inventory = context.service::<Arc<dyn Inventory>>()?;
        let shop = context.identity().space.as_str();
        let mut total_amount: i64 = 0;
        for item in &command.items {
            let price = pricing.price(shop, &item.product_id).await?;
            if price != item.price {
                let message = format!("'{}' costs {price} now", item.product_id);
                return Err(Rejection::new("order.price-inconsistency", message));
            }
            let stock = inventory.stock(&item.product_id).await?;
            if stock < item.quantity {
                let message = format!("there are {stock} of '{}' left", item.product_id);
                return Err(Rejection::new("order.inventory-shortage", message));
            }
            let amount = item.price.checked_mul(item.quantity);
            total_amount = amount
                .and_then(|amount| total_amount.checked_add(amount))
                .ok_or_else(overflow)?;
        }
        Ok(Decision::event(OrderEvent::OrderCreated {
            items: command.items.clone(),
            address: command.address.clone(),
            from_cart: command.from_cart,
            total_amount,
        }))
    }
}

/// Sends the order somewhere else.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure, owner, action = "address")]
pub(crate) struct ChangeAddress {
    pub(crate) address: Address,
}

impl Decide<ChangeAddress> for Order {
    async fn decide(&self, command: &ChangeAddress, _context: &DecideContext) -> Decided {
        match self.status {
            OrderStatus::Created | OrderStatus::Paid => {
                let address = command.address.clone();
                Ok(Decision::event(OrderEvent::AddressChanged { address }))
            }
            OrderStatus::Shipped | OrderStatus::Received => Err(shipped()),
        }
    }
}

/// Hands the order to the carrier.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure, roles("shipper"), method = "POST", action = "package")]
pub(crate) struct ShipOrder {}

impl Decide<ShipOrder> for Order {
    async fn decide(&self, _command: &ShipOrder, _context: &DecideContext) -> Decided {
        match self.status {
            OrderStatus::Created => Err(Rejection::new("order.unpaid", "the order is not paid")),
            OrderStatus::Paid => Ok(Decision::event(OrderEvent::OrderShipped)),
            OrderStatus::Shipped | OrderStatus::Received => Err(shipped()),
        }
    }
}

/// Confirms that the order has arrived.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure, owner)]
pub(crate) struct ReceiptOrder {}

impl Decide<ReceiptOrder> for Order {
    async fn decide(&self, _command: &ReceiptOrder, _context: &DecideContext) -> Decided {
        match self.status {
            OrderStatus::Created | OrderStatus::Paid => Err(Rejection::new(
                "order.not-shipped",
                "the order is not shipped",
            )),
            OrderStatus::Shipped => Ok(Decision::event(OrderEvent::OrderReceived)),
            OrderStatus::Received => Err(Rejection::new(
                "order.received",
                "the order was received already",
            )),
        }
    }
}

fn shipped() -> Rejection {
    Rejection::new("order.shipped", "the order is shipped already")
}

pub(super) fn overflow() -> Rejection {
    Rejection::new(
        "order.amount-overflow",
        "the amount is more than an order can have",
    )
}
