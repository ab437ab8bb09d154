//! Every command of an order, who may send it, and what it is refused for.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wow::kernel::access::Principal;
use wow::testkit::{Given, When, given};

use super::commands::*;
use super::payment::PayOrder;
use super::services::{FlatPrices, FlatStock, Inventory, Pricing};
use super::state::{Address, Order, OrderEvent, OrderItem, OrderStatus};

fn item(product_id: &str, price: i64, quantity: i64) -> OrderItem {
    OrderItem {
        product_id: product_id.into(),
        price,
        quantity,
    }
}

fn address(city: &str) -> Address {
    Address {
        country: "DE".into(),
        province: "BE".into(),
        city: city.into(),
        district: "Mitte".into(),
        detail: "Unter den Linden 1".into(),
    }
}

/// Ann's order in a shop where everything costs 10 and there are 100 of it.
fn nothing_yet() -> Given<Order> {
    given::<Order>("order-1")
        .tenant("acme")
        .owner("ann")
        .space("shop")
        .registered_by(super::register)
        .provide::<Arc<dyn Pricing>>(Arc::new(FlatPrices::default()))
        .provide::<Arc<dyn Inventory>>(Arc::new(FlatStock::default()))
}

fn create(items: Vec<OrderItem>) -> CreateOrder {
    CreateOrder {
        items,
        address: address("Berlin"),
        from_cart: false,
    }
}

fn created(items: Vec<OrderItem>, total_amount: i64) -> OrderEvent {
    OrderEvent::OrderCreated {
        items,
        address: address("Berlin"),
        from_cart: false,
        total_amount,
    }
}

fn paid(amount: i64) -> OrderEvent {
    OrderEvent::OrderPaid {
        payment_id: format!("p{amount}"),
        amount,
    }
}

/// A payment that goes by its amount.
fn pay(amount: i64) -> PayOrder {
    PayOrder {
        payment_id: format!("p{amount}"),
        amount,
    }
}

/// An order of 20, after these events.
fn order_after(events: impl IntoIterator<Item = OrderEvent>) -> Given<Order> {
    let created = created(vec![item("tea", 10, 2)], 20);
    nothing_yet().events([created]).events(events)
}

fn principal(subject: &str, roles: &[&str]) -> Principal {
    Principal {
        subject: Some(Arc::from(subject)),
        roles: roles.iter().map(|role| Arc::from(*role)).collect(),
        ..Principal::default()
    }
}

fn ship(order: Given<Order>) -> When<Order> {
    order
        .when(ShipOrder {})
        .principal(principal("carl", &["shipper"]))
}

#[test]
fn an_order_is_created_at_the_prices_of_its_shop() {
    nothing_yet()
        .when_json(
            "create_order",
            &json!({
                "items": [{"productId": "tea", "price": 10, "quantity": 2}],
                "address": address("Berlin"),
                "fromCart": true,
            })
            .to_string(),
        )
        .then()
        .events([OrderEvent::OrderCreated {
            items: vec![item("tea", 10, 2)],
            address: address("Berlin"),
            from_cart: true,
            total_amount: 20,
        }])
        .state(|order| {
            let json = serde_json::to_value(order).unwrap();
            let items = json!([{"productId": "tea", "price": 10, "quantity": 2}]);
            let address = json!({
                "country": "DE", "province": "BE", "city": "Berlin", "district": "Mitte",
                "detail": "Unter den Linden 1"
            });
            let expected = json!({
                "id": "order-1", "items": items, "address": address, "totalAmount": 20,
                "paidAmount": 0, "status": "CREATED"
            });
            assert_eq!(json, expected);
        })
        .facts(|facts| {
            assert_eq!(
                (facts.owner.as_str(), facts.space.as_str()),
                ("ann", "shop")
            )
        });
}

#[test]
fn a_changed_price_is_refused() {
    let then = nothing_yet().when(create(vec![item("tea", 9, 1)])).then();
    then.rejects("order.price-inconsistency");
}

#[test]
fn the_space_is_the_shop_and_has_its_own_prices() {
    let prices = || FlatPrices {
        price: 10,
        by_shop: BTreeMap::from([("outlet".to_owned(), 7)]),
    };
    let items = vec![item("tea", 7, 1)];
    let in_shop = |shop: &str| {
        let order = nothing_yet()
            .space(shop)
            .provide::<Arc<dyn Pricing>>(Arc::new(prices()));
        order.when(create(items.clone())).then()
    };
    in_shop("outlet").events([created(items.clone(), 7)]);
    in_shop("shop").rejects("order.price-inconsistency");
}

#[test]
fn what_is_out_of_stock_is_refused() {
    nothing_yet()
        .when(create(vec![item("tea", 10, 100)]))
        .then()
        .events([created(vec![item("tea", 10, 100)], 1_000)]);
    let then = nothing_yet()
        .when(create(vec![item("tea", 10, 101)]))
        .then();
    then.rejects("order.inventory-shortage");
}

#[test]
fn r6_items_of_one_product_are_merged_before_stock_is_asked() {
    let twice = vec![
        item("tea", 10, 60),
        item("milk", 10, 1),
        item("tea", 10, 40),
    ];
    let merged = vec![item("tea", 10, 100), item("milk", 10, 1)];
    nothing_yet()
        .when(create(twice))
        .then()
        .events([created(merged, 1_010)]);
    let too_many = vec![item("tea", 10, 60), item("tea", 10, 41)];
    nothing_yet()
        .when(create(too_many))
        .then()
        .rejects("order.inventory-shortage");
    let two_prices = vec![item("tea", 10, 1), item("tea", 9, 1)];
    nothing_yet()
        .when(create(two_prices))
        .then()
        .rejects("order.price-inconsistency");
}

#[test]
fn amounts_that_overflow_are_refused() {
    let endless = |pieces, items| {
        let prices = FlatPrices {
            price: i64::MAX,
            by_shop: BTreeMap::new(),
        };
        let order = nothing_yet()
            .provide::<Arc<dyn Pricing>>(Arc::new(prices))
            .provide::<Arc<dyn Inventory>>(Arc::new(FlatStock { pieces }));
        order
            .when(create(items))
            .then()
            .rejects("order.amount-overflow");
    };
    endless(2, vec![item("tea", i64::MAX, 2)]);
    endless(2, vec![item("tea", i64::MAX, 1), item("milk", i64::MAX, 1)]);
    endless(
        i64::MAX,
        vec![item("tea", 10, i64::MAX), item("tea", 10, 1)],
    );
    order_after([])
        .when(pay(i64::MAX))
        .then()
        .when(pay(i64::MAX - 1))
        .then()
        .rejects("order.amount-overflow");
}

#[test]
fn an_order_has_items_with_product_price_and_quantity() {
    let then = nothing_yet().when(create(Vec::new())).then();
    then.rejects("wow.command.invalid").faults(["items"]);
    let then = nothing_yet()
        .when(create(vec![item("tea", 10, 1), item(" ", 0, -1)]))
        .then();
    let fields = ["items[1].productId", "items[1].price", "items[1].quantity"];
    then.rejects("wow.command.invalid").faults(fields);
}

#[test]
fn a_service_that_is_not_provided_is_named() {
    given::<Order>("order-1")
        .owner("ann")
        .when(create(vec![item("tea", 10, 1)]))
        .then()
        .rejects("wow.command.service-missing");
}

#[test]
fn the_address_is_changed_until_the_order_is_shipped() {
    let change = || ChangeAddress {
        address: address("Bonn"),
    };
    let changed = OrderEvent::AddressChanged {
        address: address("Bonn"),
    };
    order_after([])
        .when(change())
        .then()
        .events([changed.clone()])
        .state(|order| assert_eq!(order.address.city, "Bonn"));
    order_after([paid(20)])
        .when(change())
        .then()
        .events([changed]);
    let shipped = || order_after([paid(20), OrderEvent::OrderShipped]);
    shipped().when(change()).then().rejects("order.shipped");
    let received = shipped().events([OrderEvent::OrderReceived]);
    received.when(change()).then().rejects("order.shipped");
}

#[test]
fn an_order_is_paid_in_parts() {
    order_after([])
        .when(pay(15))
        .then()
        .events([paid(15)])
        .state(|order| {
            assert_eq!(
                (order.paid_amount, order.status),
                (15, OrderStatus::Created)
            )
        })
        .when(pay(5))
        .then()
        .events([paid(5)])
        .state(|order| assert_eq!((order.paid_amount, order.status), (20, OrderStatus::Paid)));
}

#[test]
fn r51_the_hook_records_what_is_paid_too_much() {
    let over = |over_pay| OrderEvent::OverPaid { over_pay };
    order_after([])
        .when(pay(23))
        .then()
        .events([paid(23), over(3)])
        .state(|order| assert_eq!((order.paid_amount, order.status), (20, OrderStatus::Paid)))
        .when(pay(4))
        .then()
        .events([paid(4), over(4)])
        .state(|order| assert_eq!(order.paid_amount, 20));
}

#[test]
fn a_payment_that_is_reported_again_counts_once() {
    let other = PayOrder {
        amount: 5,
        ..pay(15)
    };
    order_after([])
        .when(pay(15))
        .then()
        .when(pay(15))
        .then()
        .nothing()
        .state(|order| assert_eq!(order.paid_amount, 15))
        .when(other)
        .then()
        .rejects("order.payment-mismatch")
        .when(pay(23))
        .then()
        .when(pay(23))
        .then()
        .nothing()
        .state(|order| assert_eq!((order.paid_amount, order.payments.len()), (20, 2)));
}

#[test]
fn a_payment_has_an_id_and_an_amount() {
    let nothing = PayOrder {
        payment_id: String::new(),
        amount: 0,
    };
    let then = order_after([]).when(nothing).then();
    then.rejects("wow.command.invalid")
        .faults(["paymentId", "amount"]);
}

#[test]
fn a_paid_order_is_shipped_once() {
    ship(order_after([])).then().rejects("order.unpaid");
    ship(order_after([paid(20)]))
        .then()
        .events([OrderEvent::OrderShipped])
        .state(|order| assert_eq!(order.status, OrderStatus::Shipped))
        .when(ShipOrder {})
        .principal(principal("carl", &["shipper"]))
        .then()
        .rejects("order.shipped");
}

#[test]
fn r4_only_a_shipper_ships() {
    let order = || order_after([paid(20)]);
    order()
        .when(ShipOrder {})
        .then()
        .rejects("wow.access.unauthenticated");
    let customer = order().when(ShipOrder {}).principal(principal("ann", &[]));
    customer.then().rejects("wow.access.denied");
}

#[test]
fn r4_only_the_owner_changes_the_address_and_receives() {
    let shipped = || order_after([paid(20), OrderEvent::OrderShipped]);
    let ann = || principal("ann", &[]);
    let received = shipped().when(ReceiptOrder {}).principal(ann());
    received.then().events([OrderEvent::OrderReceived]);
    // Bob can neither act for Ann, nor find her order among his.
    let for_ann = shipped()
        .when(ReceiptOrder {})
        .principal(principal("bob", &[]));
    for_ann.then().rejects("wow.command.identity-conflict");
    let as_bob = shipped()
        .when(ReceiptOrder {})
        .owner("bob")
        .principal(principal("bob", &[]));
    as_bob.then().rejects("wow.aggregate.not-found");
    let change = ChangeAddress {
        address: address("Bonn"),
    };
    let changed = order_after([]).when(change.clone()).principal(ann()).then();
    changed.event_names(["address_changed"]);
    let by_bob = order_after([])
        .when(change)
        .owner("bob")
        .principal(principal("bob", &[]));
    by_bob.then().rejects("wow.aggregate.not-found");
}

#[test]
fn a_shipped_order_is_received_once() {
    let receipt = |order: Given<Order>| order.when(ReceiptOrder {}).then();
    receipt(order_after([])).rejects("order.not-shipped");
    receipt(order_after([paid(20)])).rejects("order.not-shipped");
    receipt(order_after([paid(20), OrderEvent::OrderShipped]))
        .events([OrderEvent::OrderReceived])
        .state(|order| assert_eq!(order.status, OrderStatus::Received))
        .when(ReceiptOrder {})
        .then()
        .rejects("order.received");
}

#[test]
fn r57_an_order_is_not_reached_from_another_shop() {
    let elsewhere = order_after([]).when(pay(1)).space("outlet");
    elsewhere.then().rejects("wow.access.space");
    let ann = order_after([])
        .when(pay(1))
        .space("outlet")
        .principal(principal("ann", &[]));
    ann.then().rejects("wow.aggregate.not-found");
}
