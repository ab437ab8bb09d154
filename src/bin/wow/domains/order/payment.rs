//! Paying an order. A payment has happened when it is reported, so it is never refused for being
//! too much: what is over is recorded too, for whoever pays back. Reported again, even in a request
//! of its own, it is the same payment and counts once.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use super::super::not_blank;
use super::commands::{Decided, overflow};
use super::state::{Order, OrderEvent};

/// Reports a payment.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Command)]
#[command(pure, validate, method = "POST", action = "pay")]
#[serde(rename_all = "camelCase")]
pub(crate) struct PayOrder {
    #[garde(custom(not_blank))]
    pub(crate) payment_id: String,
    #[garde(range(min = 1))]
    pub(crate) amount: i64,
}

impl Decide<PayOrder> for Order {
    async fn decide(&self, command: &PayOrder, _context: &DecideContext) -> Decided {
        let (payment_id, amount) = (command.payment_id.clone(), command.amount);
        let known = self
            .payments
            .iter()
            .find(|known| known.payment_id == payment_id);
        match known {
            Some(known) if known.amount == amount => return Ok(Decision::none()),
            Some(_) => {
                let message = "this payment was reported with another amount";
                return Err(
                    Rejection::new("order.payment-mismatch", message).kind(RejectionKind::Conflict)
                );
            }
            None => {}
        }
        self.paid_amount.checked_add(amount).ok_or_else(overflow)?;
        Ok(Decision::event(OrderEvent::OrderPaid {
            payment_id,
            amount,
        }))
    }
}

/// A hook: whichever command has paid, what is over the total is recorded with it.
pub(super) fn note_overpayment(
    order: &Order,
    events: &[OrderEvent],
    _context: &DecideContext,
) -> Result<Vec<OrderEvent>, Rejection> {
    let paid = events.iter().map(|event| match event {
        OrderEvent::OrderPaid { amount, .. } => *amount,
        _ => 0,
    });
    let over_pay = paid.sum::<i64>() - order.payable();
    Ok(match over_pay {
        1.. if !events.is_empty() => vec![OrderEvent::OverPaid { over_pay }],
        _ => Vec::new(),
    })
}
