//! Every command of a cart, and what it is refused for.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use wow::prelude::*;
use wow::testkit::{Given, given, given_saga};

use super::super::order::{Address, OrderEvent, OrderItem};
use super::CartSaga;
use super::commands::*;
use super::state::{Cart, CartEvent, CartItem};

fn item(product_id: &str, quantity: i64) -> CartItem {
    CartItem {
        product_id: product_id.into(),
        quantity,
    }
}

fn added(product_id: &str, quantity: i64) -> CartEvent {
    CartEvent::CartItemAdded {
        added: item(product_id, quantity),
    }
}

fn changed(product_id: &str, quantity: i64) -> CartEvent {
    CartEvent::CartQuantityChanged {
        changed: item(product_id, quantity),
    }
}

fn add(product_id: &str, quantity: i64) -> AddCartItem {
    AddCartItem {
        product_id: product_id.into(),
        quantity,
    }
}

fn cart_with(events: impl IntoIterator<Item = CartEvent>) -> Given<Cart> {
    given::<Cart>("ann").events(events)
}

#[test]
fn the_first_product_makes_the_cart() {
    given::<Cart>("ann")
        .when_json("add_cart_item", r#"{"productId": "tea"}"#)
        .then()
        .events([added("tea", 1)])
        .facts(|facts| assert_eq!(facts.owner.as_str(), "ann"))
        .state(|cart| {
            let json = serde_json::to_value(cart).unwrap();
            let items = serde_json::json!([{"productId": "tea", "quantity": 1}]);
            let expected = serde_json::json!({"id": "ann", "items": items, "size": 1});
            assert_eq!(json, expected);
        });
}

#[test]
fn a_product_that_is_in_it_becomes_more() {
    cart_with([added("tea", 2)])
        .when(add("tea", 3))
        .then()
        .events([changed("tea", 5)])
        .state(|cart| assert_eq!(cart.items, [item("tea", 5)]));
}

#[test]
fn a_cart_takes_a_hundred_products() {
    let full = || cart_with((0..100).map(|number| added(&format!("product-{number}"), 1)));
    full()
        .when(add("one too many", 1))
        .then()
        .rejects("cart.full")
        .state(|cart| assert_eq!(cart.size, 100));
    full()
        .when(add("product-7", 1))
        .then()
        .events([changed("product-7", 2)]);
}

#[test]
fn a_quantity_that_overflows_is_refused() {
    let cart = cart_with([added("tea", i64::MAX)]);
    cart.when(add("tea", 1))
        .then()
        .rejects("cart.quantity-overflow");
}

#[test]
fn a_product_has_a_name_and_a_quantity() {
    let then = given::<Cart>("ann").when(add(" ", 0)).then();
    then.rejects("wow.command.invalid")
        .faults(["productId", "quantity"]);
    let change = ChangeQuantity {
        product_id: String::new(),
        quantity: -1,
    };
    let then = cart_with([added("tea", 1)]).when(change).then();
    then.rejects("wow.command.invalid")
        .faults(["productId", "quantity"]);
}

#[test]
fn a_quantity_is_changed() {
    let change = |product_id: &str| ChangeQuantity {
        product_id: product_id.into(),
        quantity: 7,
    };
    cart_with([added("tea", 1), added("milk", 1)])
        .when(change("milk"))
        .then()
        .events([changed("milk", 7)])
        .state(|cart| assert_eq!(cart.items, [item("tea", 1), item("milk", 7)]))
        .when(change("sugar"))
        .then()
        .rejects("cart.item-missing");
    let nowhere = given::<Cart>("ann").when(change("tea")).then();
    nowhere.rejects("wow.aggregate.not-found");
}

#[test]
fn products_are_removed_whether_or_not_they_are_there() {
    let removed = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let product_ids = removed(&["tea", "sugar"]);
    cart_with([added("tea", 1), added("milk", 1)])
        .when(RemoveCartItem {
            product_ids: product_ids.clone(),
        })
        .then()
        .events([CartEvent::CartItemRemoved { product_ids }])
        .state(|cart| assert_eq!((&*cart.items, cart.size), (&[item("milk", 1)][..], 1)));
}

#[test]
fn something_has_to_be_removed() {
    let remove = |product_ids| RemoveCartItem { product_ids };
    let then = cart_with([added("tea", 1)]).when(remove(Vec::new())).then();
    then.rejects("wow.command.invalid").faults(["productIds"]);
    let blank = vec!["tea".to_owned(), String::new()];
    let then = cart_with([added("tea", 1)]).when(remove(blank)).then();
    then.rejects("wow.command.invalid")
        .faults(["productIds[1]"]);
    let then = given::<Cart>("ann")
        .when(remove(vec!["tea".to_owned()]))
        .then();
    then.rejects("wow.aggregate.not-found");
}

#[test]
fn r45_looking_at_a_cart_commits_nothing() {
    given::<Cart>("ann").when(ViewCart {}).then().nothing();
    let then = cart_with([added("tea", 1)])
        .when_json("view_cart", "")
        .then();
    then.nothing().state(|cart| assert_eq!(cart.size, 1));
}

#[test]
fn r3_a_cart_is_its_owners() {
    let then = cart_with([added("tea", 1)])
        .when(ViewCart {})
        .owner("bob")
        .then();
    then.rejects("wow.command.identity-conflict");
}

fn ordered(from_cart: bool) -> OrderEvent {
    let item = |product_id: &str| OrderItem {
        product_id: product_id.into(),
        price: 10,
        quantity: 1,
    };
    OrderEvent::OrderCreated {
        items: vec![item("tea"), item("milk")],
        address: Address::default(),
        from_cart,
        total_amount: 20,
    }
}

#[test]
fn what_is_ordered_from_a_cart_leaves_it() {
    let product_ids = vec!["tea".to_owned(), "milk".to_owned()];
    let remove = RemoveCartItem { product_ids };
    given_saga(CartSaga)
        .id("order-1")
        .tenant("acme")
        .owner("ann")
        .space("shop")
        .when(ordered(true))
        .sends([SagaCommand::to_owner("ann", remove).space("")])
        .rejected(0, CommandError::NotFound)
        .sends_nothing();
}

#[test]
fn what_is_ordered_otherwise_leaves_the_cart_alone() {
    given_saga(CartSaga)
        .owner("ann")
        .when(ordered(false))
        .sends_nothing();
    given_saga(CartSaga)
        .owner("ann")
        .when(OrderEvent::OrderShipped)
        .sends_nothing();
}
