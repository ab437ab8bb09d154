//! The order: what it is, and what happens to it.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::super::not_blank;
use super::commands::{ChangeAddress, CreateOrder, ReceiptOrder, ShipOrder};
use super::payment::{PayOrder, note_overpayment};

/// An order. Amounts are whole numbers of the smallest unit.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(
    resource = "sales-order",
    owner = "always",
    // Orders of the first one don't know which payments they had.
    revision = 2,
    commands(CreateOrder, ChangeAddress, PayOrder, ShipOrder, ReceiptOrder),
    after(note_overpayment)
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Order {
    #[aggregate(id)]
    pub(crate) id: String,
    pub(crate) items: Vec<OrderItem>,
    pub(crate) address: Address,
    pub(crate) total_amount: i64,
    /// What was paid of it; never more than the total.
    pub(crate) paid_amount: i64,
    pub(crate) status: OrderStatus,
    /// The payments it had, so that one that is reported again is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) payments: Vec<Payment>,
}

/// A payment that was reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Payment {
    pub(crate) payment_id: String,
    pub(crate) amount: i64,
}

/// How far an order has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum OrderStatus {
    #[default]
    Created,
    Paid,
    Shipped,
    Received,
}

/// How much of a product, and what one piece costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderItem {
    #[garde(custom(not_blank))]
    pub(crate) product_id: String,
    #[garde(range(min = 1))]
    pub(crate) price: i64,
    #[garde(range(min = 1))]
    pub(crate) quantity: i64,
}

/// Where an order goes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Address {
    pub(crate) country: String,
    pub(crate) province: String,
    pub(crate) city: String,
    pub(crate) district: String,
    pub(crate) detail: String,
}

/// What happens to an order.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(rename_all_fields = "camelCase")]
pub(crate) enum OrderEvent {
    OrderCreated {
        items: Vec<OrderItem>,
        address: Address,
        from_cart: bool,
        total_amount: i64,
    },
    AddressChanged {
        address: Address,
    },
    OrderPaid {
        payment_id: String,
        amount: i64,
    },
    OverPaid {
        over_pay: i64,
    },
    OrderShipped,
    OrderReceived,
}

impl Order {
    /// What is still to be paid.
    pub(super) fn payable(&self) -> i64 {
        self.total_amount - self.paid_amount
    }
}

impl Evolve for Order {
    type Event = OrderEvent;

    // Deciding has made sure that no sum overflows.
    fn evolve(&mut self, event: &OrderEvent) {
        match event {
            OrderEvent::OrderCreated {
                items,
                address,
                total_amount,
                ..
            } => {
                self.items.clone_from(items);
                self.address.clone_from(address);
                self.total_amount = *total_amount;
            }
            OrderEvent::AddressChanged { address } => self.address.clone_from(address),
            OrderEvent::OrderPaid { payment_id, amount } => {
                self.payments.push(Payment {
                    payment_id: payment_id.clone(),
                    amount: *amount,
                });
                self.paid_amount += amount;
                if self.status == OrderStatus::Created && self.payable() <= 0 {
                    self.status = OrderStatus::Paid;
                }
            }
            OrderEvent::OverPaid { over_pay } => self.paid_amount -= over_pay,
            OrderEvent::OrderShipped => self.status = OrderStatus::Shipped,
            OrderEvent::OrderReceived => self.status = OrderStatus::Received,
        }
    }
}
