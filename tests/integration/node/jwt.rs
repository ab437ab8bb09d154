//! Callers who have to prove who they are (`access.mode = "jwt"`).

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use crate::support::process::refusal;
use crate::support::{Folder, Node};

const SECRET: &str = "an example of a secret, long enough for its hash";

const SETTINGS: [&str; 4] = [
    "access.mode=jwt",
    "access.issuer=https://id.example",
    "access.audience=wow",
    "access.hs256-secret-file=secret",
];

async fn start(folder: &Folder) -> Node {
    std::fs::write(folder.path("secret"), SECRET).unwrap();
    Node::start_with(folder, &SETTINGS).await
}

/// A token of the issuer's, with these claims over the usual ones.
fn token_with(claims: &Value) -> String {
    let mut all = json!({
        "iss": "https://id.example",
        "aud": "wow",
        "exp": get_current_timestamp() + 600,
    });
    for (name, value) in claims.as_object().unwrap() {
        all[name] = value.clone();
    }
    signed(&all, SECRET)
}

fn signed(claims: &Value, secret: &str) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes()).unwrap();
    encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}

fn token(subject: &str) -> String {
    token_with(&json!({"sub": subject}))
}

fn order() -> Value {
    let address = json!({
        "country": "c", "province": "p", "city": "c", "district": "d", "detail": "d",
    });
    json!({"address": address, "items": [{"productId": "p", "price": 10, "quantity": 1}]})
}

#[tokio::test]
async fn r4_who_proves_nothing_is_asked_to_and_nothing_is_committed() {
    let folder = Folder::new();
    let node = start(&folder).await;
    let client = node.client();
    let now = get_current_timestamp();
    let claims = |changed: Value| {
        let mut claims = json!({
            "iss": "https://id.example", "aud": "wow", "sub": "ann", "exp": now + 600,
        });
        for (name, value) in changed.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    // A header that asks for no signature, and a body to go with it.
    let unsigned = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiJhbm4ifQ.";
    let body = json!({"name": "ann", "balance": 1});
    for (what, bearer) in [
        ("none", None),
        ("no token", Some("nonsense".to_owned())),
        ("unsigned", Some(unsigned.to_owned())),
        (
            "another's key",
            Some(signed(
                &claims(json!({})),
                "another secret, as long as that",
            )),
        ),
        (
            "expired",
            Some(signed(&claims(json!({"exp": now - 600})), SECRET)),
        ),
        (
            "another issuer",
            Some(signed(&claims(json!({"iss": "https://x"})), SECRET)),
        ),
        (
            "another audience",
            Some(signed(&claims(json!({"aud": "x"})), SECRET)),
        ),
        (
            "not yet",
            Some(signed(&claims(json!({"nbf": now + 600})), SECRET)),
        ),
    ] {
        let mut create = client.post("/account/create_account", &body);
        let mut read = client.get("/account/ann/state");
        if let Some(bearer) = &bearer {
            create = create.token(bearer);
            read = read.token(bearer);
        }
        for answer in [create.send().await, read.send().await] {
            assert_eq!(answer.header("WWW-Authenticate"), "Bearer", "{what}");
            assert!(
                bearer
                    .as_ref()
                    .is_none_or(|bearer| !answer.text.contains(bearer.as_str()))
            );
            answer.refused(401, "wow.access.unauthenticated");
        }
    }
    let create = client
        .post("/account/create_account", &body)
        .token(&token("ann"));
    let first = create.header("Command-Aggregate-Id", "ann").ok().await;
    assert_eq!(first["aggregateVersion"], 1, "nothing was there before");
    node.stop().await;
}

#[tokio::test]
async fn r4_a_role_opens_what_is_for_that_role_only() {
    let folder = Folder::new();
    let node = start(&folder).await;
    let client = node.client();
    let create = client
        .post("/owner/ann/sales-order", &order())
        .token(&token("ann"));
    let created = create.ok().await;
    let path = format!(
        "/owner/ann/sales-order/{}",
        created["aggregateId"].as_str().unwrap()
    );
    let pay = json!({"paymentId": "p-1", "amount": 10});
    client
        .post(&format!("{path}/pay"), &pay)
        .token(&token("ann"))
        .ok()
        .await;

    let ship = |token: String| {
        client
            .post(&format!("{path}/package"), &json!({}))
            .token(&token)
    };
    ship(token("ann"))
        .send()
        .await
        .refused(403, "wow.access.denied");
    let other_role = token_with(&json!({"sub": "ann", "roles": ["clerk"]}));
    ship(other_role)
        .send()
        .await
        .refused(403, "wow.access.denied");
    // Who ships is not who ordered: the role lets its holder name the owner.
    let own = token_with(&json!({"sub": "sam", "roles": ["clerk", "shipper"]}));
    ship(own).ok().await;
    node.stop().await;
}

#[tokio::test]
async fn r57_another_owners_aggregate_is_as_if_it_did_not_exist() {
    let folder = Folder::new();
    let node = start(&folder).await;
    let client = node.client();
    let create = client
        .post("/owner/ann/sales-order", &order())
        .token(&token("ann"));
    let id = create.ok().await["aggregateId"]
        .as_str()
        .unwrap()
        .to_owned();
    let address = json!({"address": order()["address"]});
    // Whose order it is, bob can't say; as his own, it is as if it weren't there.
    for (owner, refusal) in [
        ("ann", (400, "wow.command.identity-conflict")),
        ("bob", (404, "wow.aggregate.not-found")),
    ] {
        for id in [id.as_str(), "no-such-order"] {
            let path = format!("/owner/{owner}/sales-order/{id}");
            let reads = ["state", "state/1", "snapshot", "event/1/1", "state/tracing"];
            for read in reads {
                let read = client.get(&format!("{path}/{read}")).token(&token("bob"));
                let answer = read.send().await;
                assert!(!answer.text.contains("district"));
                answer.refused(refusal.0, refusal.1);
            }
            let change = client.put(&format!("{path}/address"), &address);
            let answer = change.token(&token("bob")).send().await;
            answer.refused(refusal.0, refusal.1);
        }
    }
    let cart = client.post("/owner/ann/cart/add_cart_item", &json!({"productId": "p"}));
    let answer = cart.token(&token("bob")).send().await;
    answer.refused(400, "wow.command.identity-conflict");
    let own = client.put(&format!("/owner/ann/sales-order/{id}/address"), &address);
    own.token(&token("ann")).ok().await;
    node.stop().await;
}

#[tokio::test]
async fn r13_a_stored_result_is_shown_to_nobody_but_its_own_caller() {
    let folder = Folder::new();
    let node = start(&folder).await;
    let client = node.client();
    let create = || {
        let body = json!({"name": "ann", "balance": 1});
        let request = client.post("/account/create_account", &body);
        request.header("Command-Request-Id", "r-1")
    };
    let first = create().token(&token("ann")).ok().await;
    let again = create().token(&token("ann")).ok().await;
    assert_eq!(
        (&again["duplicate"], &again["commandId"]),
        (&json!(true), &first["commandId"])
    );

    let id = first["aggregateId"].as_str().unwrap();
    let other = create().token(&token("bob")).send().await;
    assert!(!other.text.contains(id) && !other.text.contains(first["commandId"].as_str().unwrap()));
    other.refused(409, "wow.command.request-id-reused");
    let anonymous = create().send().await;
    assert!(!anonymous.text.contains(id));
    anonymous.refused(401, "wow.access.unauthenticated");
    node.stop().await;
}

#[tokio::test]
async fn r3_a_token_names_the_tenant_and_nothing_may_contradict_it() {
    let folder = Folder::new();
    let node = start(&folder).await;
    let client = node.client();
    let token = token_with(&json!({"sub": "ann", "tenant_id": "acme"}));
    let created = client
        .post("/owner/ann/sales-order", &order())
        .token(&token)
        .ok()
        .await;
    assert_eq!(created["tenantId"], "acme");
    let contradicted = client.post("/tenant/other/owner/ann/sales-order", &order());
    let answer = contradicted.token(&token).send().await;
    assert!(!answer.text.contains("acme"), "{}", answer.text);
    answer.refused(400, "wow.command.identity-conflict");
    node.stop().await;
}

#[tokio::test]
async fn a_node_without_keys_does_not_start() {
    let (code, told) = refusal(&Folder::new(), &SETTINGS).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("secret"), "{told}");
    let folder = Folder::new();
    std::fs::write(folder.path("secret"), "short").unwrap();
    let (code, told) = refusal(&folder, &SETTINGS).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(!told.contains("short\n"), "{told}");
}
