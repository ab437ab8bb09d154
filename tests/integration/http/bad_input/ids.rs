//! R3: ids that are none, wherever they come from, and facts on which sources disagree.

use serde_json::json;

use super::{Case, all_are_refused, lock};

#[tokio::test]
async fn r3_an_aggregate_id_that_is_none_is_refused() {
    let overlong = "x".repeat(129);
    let bad = [
        ("overlong", &*overlong),
        ("a control character", "a%00b"),
        ("a line break", "a%0Ab"),
        ("a slash", "a%2Fb"),
        ("a blank before", "%20a"),
        ("a blank behind", "a%20"),
        ("a wide blank", "%E3%80%80a"),
        ("only a blank", "%20"),
    ];
    all_are_refused(|client| {
        let case = |(what, id): (&'static str, &str)| {
            let path = format!("/account/{id}/lock_amount");
            let request = client.put(&path, &json!({"amount": 1}));
            let case = Case::new(what, request, (400, "wow.command.identity-invalid"));
            case.naming("aggregate id")
        };
        bad.map(case).into()
    })
    .await;
}

#[tokio::test]
async fn r3_an_identity_header_that_is_none_is_refused_and_empty_never_means_any() {
    let overlong = "x".repeat(129);
    let bad = [
        ("Command-Aggregate-Id", "", "aggregate id"),
        ("Command-Tenant-Id", "", "tenant"),
        ("Command-Owner-Id", "", "owner"),
        ("Command-Space-Id", "", "space"),
        ("Wow-Space-Id", "", "space"),
        ("Command-Tenant-Id", &*overlong, "tenant"),
        ("Command-Space-Id", "a/b", "space"),
    ];
    all_are_refused(|client| {
        let body = json!({
            "items": [{"productId": "p", "price": 10, "quantity": 1}],
            "address": {
                "country": "c", "province": "p", "city": "c", "district": "d", "detail": "d",
            },
        });
        let case = |(name, value, fact): (&'static str, &str, &'static str)| {
            let create = client.post("/owner/ann/sales-order", &body);
            let request = create.header(name, value);
            Case::new(name, request, (400, "wow.command.identity-invalid")).naming(fact)
        };
        bad.map(case).into()
    })
    .await;
}

#[tokio::test]
async fn r3_sources_that_disagree_are_refused() {
    all_are_refused(|client| {
        let add = client.post("/owner/ann/cart/add_cart_item", &json!({"productId": "p"}));
        let spaces = lock(client)
            .header("Command-Space-Id", "a")
            .header("Wow-Space-Id", "b");
        let requests = [
            (
                "path and header",
                lock(client).header("Command-Aggregate-Id", "bob"),
            ),
            (
                "the type's tenant and a header",
                lock(client).header("Command-Tenant-Id", "acme"),
            ),
            ("two headers", spaces),
            (
                "owner in path and header",
                add.header("Command-Owner-Id", "bob"),
            ),
        ];
        let refusal = (400, "wow.command.identity-conflict");
        requests
            .map(|(what, request)| Case::new(what, request, refusal))
            .into()
    })
    .await;
}
