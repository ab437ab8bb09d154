//! The flows that clients of the Wow framework send, as they send them.

use serde_json::{Value, json};

use crate::support::wait::until;
use crate::support::{Client, Folder, Node, client::Request};

/// The headers of the framework's own request scripts.
fn scripted(request: Request) -> Request {
    request
        .header("Command-Wait-Stage", "PROCESSED")
        .header("Command-Wait-Timeout", "30000")
        .header("Command-Request-Id", &uuid::Uuid::now_v7().to_string())
}

/// The state of an account, once it is as wanted.
async fn account(client: &Client, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until("the transfer is through", async || {
        let state = client.state(&format!("/account/{id}")).await;
        wanted(&state).then_some(state)
    })
    .await
}

#[tokio::test]
async fn a_transfer_runs_as_the_frameworks_script_sends_it() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    for (id, name, balance) in [("sourceId", "source", 100), ("targetId", "targetId", 0)] {
        let body = json!({"name": name, "balance": balance});
        let create = scripted(client.post("/account/create_account", &body));
        let result = create.header("Command-Aggregate-Id", id).ok().await;
        assert_eq!(result["aggregateId"], id);
        assert_eq!(result["stage"], "PROCESSED");
        assert_eq!(result["tenantId"], "(0)");
    }
    let body = json!({"to": "targetId", "amount": 10});
    let prepare = client.post("/account/sourceId/prepare", &body);
    assert_eq!(scripted(prepare).ok().await["aggregateVersion"], 2);

    let source = account(&client, "sourceId", |state| state["lockedAmount"] == 0).await;
    assert_eq!(source["balanceAmount"], 90);
    let target = account(&client, "targetId", |state| state["balanceAmount"] != 0).await;
    assert_eq!(target["balanceAmount"], 10);
    assert_eq!(target["lockedAmount"], 0);
    node.stop().await;
}

#[tokio::test]
async fn r60_a_caller_that_waits_for_the_saga_finds_its_commands_done() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("sourceId", 100).await;
    client.create_account("targetId", 0).await;
    let body = json!({"to": "targetId", "amount": 10});
    let prepare = client
        .post("/account/sourceId/prepare", &body)
        .header("Command-Wait-Stage", "SAGA_HANDLED")
        .header("Command-Wait-Processor", "TransferSaga");
    let result = prepare.ok().await;
    assert_eq!(result["stage"], "SAGA_HANDLED");
    assert_eq!(result["function"]["processorName"], "TransferSaga");
    let target = client.state("/account/targetId").await;
    assert_eq!(target["balanceAmount"], 10);
    node.stop().await;
}

#[tokio::test]
async fn a_transfer_to_a_frozen_account_gives_the_money_back() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("sourceId", 100).await;
    client.create_account("targetId", 0).await;
    let freeze = client.put(
        "/account/targetId/freeze_account",
        &json!({"reason": "lost"}),
    );
    freeze.ok().await;
    for to in ["targetId", "nobody"] {
        let body = json!({"to": to, "amount": 10});
        client.post("/account/sourceId/prepare", &body).ok().await;
        let source = account(&client, "sourceId", |state| state["lockedAmount"] == 0).await;
        assert_eq!(source["balanceAmount"], 100);
    }
    let body = json!({"to": "targetId", "amount": 101});
    let prepare = client.post("/account/sourceId/prepare", &body).send().await;
    prepare.refused(400, "account.insufficient-balance");
    node.stop().await;
}

#[tokio::test]
async fn a_cart_is_filled_as_the_frameworks_clients_fill_it() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let product = uuid::Uuid::now_v7().to_string();
    let body = json!({"productId": product, "quantity": 1});
    let add = || scripted(client.post("/owner/ann/cart/add_cart_item", &body));
    let added = add().ok().await;
    assert_eq!(
        (&added["aggregateId"], &added["ownerId"]),
        (&json!("ann"), &json!("ann"))
    );
    assert_eq!(added["aggregateVersion"], 1);
    assert_eq!(add().ok().await["aggregateVersion"], 2);
    let state = client.state("/owner/ann/cart").await;
    let items = json!([{"productId": product, "quantity": 2}]);
    assert_eq!(state, json!({"id": "ann", "items": items, "size": 1}));

    let change = json!({"productId": product, "quantity": 7});
    client
        .put("/owner/ann/cart/change_quantity", &change)
        .ok()
        .await;
    let state = client.state("/owner/ann/cart").await;
    assert_eq!(state["items"][0]["quantity"], 7);

    // A command without events commits nothing and answers with the version (R45).
    let view = client
        .put("/owner/ann/cart/view_cart", &json!({}))
        .ok()
        .await;
    assert_eq!(view["aggregateVersion"], 3);

    let remove = json!({"productIds": [product]});
    client
        .put("/owner/ann/cart/remove_cart_item", &remove)
        .ok()
        .await;
    assert_eq!(client.state("/owner/ann/cart").await["size"], 0);
    node.stop().await;
}

#[tokio::test]
async fn an_order_from_a_cart_takes_its_items_out_of_the_cart() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    for product in ["p-1", "p-2"] {
        let body = json!({"productId": product});
        client
            .post("/owner/ann/cart/add_cart_item", &body)
            .ok()
            .await;
    }
    let address = json!({
        "country": "country", "province": "province", "city": "city",
        "district": "district", "detail": "detail",
    });
    let body = json!({
        "fromCart": true, "address": address,
        "items": [{"productId": "p-1", "price": 10, "quantity": 10}],
    });
    let create = client.post("/tenant/acme/owner/ann/sales-order", &body);
    let order = create
        .header("Command-Wait-Stage", "SAGA_HANDLED")
        .ok()
        .await;
    assert_eq!(
        (&order["tenantId"], &order["ownerId"]),
        (&json!("acme"), &json!("ann"))
    );
    let id = order["aggregateId"].as_str().unwrap();
    let state = client
        .state(&format!("/tenant/acme/owner/ann/sales-order/{id}"))
        .await;
    assert_eq!(
        (&state["totalAmount"], &state["status"]),
        (&json!(100), &json!("CREATED"))
    );
    let cart = until("the order's items leave the cart", async || {
        let cart = client.state("/owner/ann/cart").await;
        (cart["size"] == 1).then_some(cart)
    })
    .await;
    assert_eq!(cart["items"][0]["productId"], "p-2");
    node.stop().await;
}
