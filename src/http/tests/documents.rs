use actix_web::test::TestRequest;

use crate::http::error::TABLE;
use crate::http::fixture::{Recorder, send};

async fn get(uri: &str) -> crate::http::fixture::Answer {
    send(&Recorder::new(), TestRequest::get().uri(uri)).await
}

#[actix_web::test]
async fn metadata_tells_types_commands_events_routes_rules_and_codes() {
    let answer = get("/wow/metadata").await;
    assert_eq!(
        (answer.status, answer.header("wow-error-code")),
        (200, "Ok")
    );
    let json = answer.json();
    assert_eq!(json["context"], "example");
    assert_eq!(json["errors"].as_array().unwrap().len(), TABLE.len());
    let busy = &json["errors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["code"] == "wow.command.busy");
    assert_eq!(busy.unwrap()["status"], 429);
    assert_eq!(busy.unwrap()["retryAfter"], 1);
    let order = json["aggregates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["name"] == "order");
    let order = order.unwrap();
    assert_eq!(order["resource"], "sales-order");
    assert_eq!(order["owner"], "always");
    assert_eq!(order["events"][0]["name"], "noted");
    let commands = order["commands"].as_array().unwrap();
    let pick = commands
        .iter()
        .find(|command| command["name"] == "pick")
        .unwrap();
    assert_eq!(pick["creation"], "updates");
    assert_eq!(pick["variables"]["picker"]["name"], "X-Picker");
    let canonical = pick["routes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|route| route["canonical"] == true);
    assert_eq!(canonical.unwrap()["method"], "PATCH");
    let path = "/tenant/{tenantId}/owner/{ownerId}/sales-order/{id}/items/{itemId}";
    assert_eq!(canonical.unwrap()["path"], path);
    assert!(
        commands
            .iter()
            .any(|command| command["name"] == "transfer_owner")
    );
}

#[actix_web::test]
async fn a_global_id_is_new_each_time_and_plain_text() {
    let (one, other) = (get("/wow/id/global").await, get("/wow/id/global").await);
    assert!(one.header("content-type").starts_with("text/plain"));
    assert!(uuid::Uuid::try_parse(&one.body).is_ok());
    assert_ne!(one.body, other.body);
}

#[actix_web::test]
async fn the_page_reads_our_document_and_needs_nothing_from_outside() {
    let redirect = get("/swagger-ui").await;
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (308, "/swagger-ui/")
    );
    let page = get("/swagger-ui/").await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(!page.body.contains("https://") && !page.body.contains("http://"));
    let start = get("/swagger-ui/swagger-initializer.js").await;
    assert!(start.body.contains("/v3/api-docs"), "{}", start.body);
    assert_eq!(
        get("/swagger-ui/nothing.js").await.code(),
        "wow.http.not-found"
    );
}

#[actix_web::test]
async fn health_says_whether_the_node_lives_and_whether_it_is_ready() {
    let recorder = Recorder::new();
    for uri in ["/health/live", "/health/ready"] {
        let answer = send(&recorder, TestRequest::get().uri(uri)).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, r#"{"status":"UP"}"#)
        );
    }
    *recorder.ready.lock() = false;
    assert_eq!(
        send(&recorder, TestRequest::get().uri("/health/live"))
            .await
            .status,
        200
    );
    let answer = send(&recorder, TestRequest::get().uri("/health/ready")).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (503, "wow.node.not-ready")
    );
    assert_eq!(answer.header("retry-after"), "1");
}
