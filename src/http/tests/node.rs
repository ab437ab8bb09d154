//! The public port over a running system on the memory backend: what clients see, end to end.

mod harness;

use reqwest::Method;
use serde_json::json;

use crate::http::Stop;
use harness::{answer, failure, start};

#[actix_web::test]
async fn r60_a_caller_reads_its_own_write_as_soon_as_it_is_answered() {
    let node = start().await;
    let result = node.create("sourceId").await;
    assert_eq!(result["stage"], "SNAPSHOT");
    assert_eq!(result["aggregateId"], "sourceId");
    assert_eq!(result["aggregateVersion"], 1);
    assert_eq!(result["errorCode"], "Ok");
    assert_eq!(
        node.get("/account/sourceId/state").await,
        (200, json!({"balance": 0}))
    );
    let (_, snapshot) = node.get("/account/sourceId/snapshot").await;
    assert_eq!(snapshot["version"], 1);
    assert_eq!(snapshot["eventId"], result["commandId"]);
    node.stop().await;
}

#[actix_web::test]
async fn r40_a_retried_request_gets_the_first_result_and_another_use_of_its_id_does_not() {
    let node = start().await;
    let body = json!({"name": "source", "balance": 100});
    let create = || {
        let request = node.post("/account/create_account", &body);
        request.header("Command-Request-Id", "r-1")
    };
    let (_, first) = answer(create()).await;
    let (status, second) = answer(create()).await;
    assert_eq!((status, &second["duplicate"]), (200, &json!(true)));
    for key in ["aggregateId", "aggregateVersion", "commandId", "requestId"] {
        assert_eq!(first[key], second[key], "{key}");
    }
    let id = first["aggregateId"].as_str().unwrap();
    let other = node.post(&format!("/account/{id}/entry"), &json!({"amount": 1}));
    let code = failure(other.header("Command-Request-Id", "r-1")).await;
    assert_eq!(code, (409, "wow.command.request-id-reused".to_owned()));
    node.stop().await;
}

#[actix_web::test]
async fn commits_states_and_traces_are_read_by_version() {
    let node = start().await;
    node.create("a").await;
    let entry = node.post("/account/a/entry", &json!({"amount": 1}));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let entry = entry
        .header("traceparent", trace)
        .header("Command-Header-Channel", "app");
    assert_eq!(answer(entry).await.0, 200);
    let (_, commits) = node.get("/account/a/event/1/10").await;
    let versions: Vec<_> = commits
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["version"])
        .collect();
    assert_eq!(versions, [1, 2]);
    assert_eq!(
        commits[1]["header"],
        json!({"channel": "app", "traceparent": trace})
    );
    assert_eq!(commits[1]["body"][0]["name"], "noted");
    let (_, traced) = node.get("/account/a/state/tracing?limit=1").await;
    assert_eq!(traced.as_array().unwrap().len(), 1);
    assert_eq!(
        (&traced[0]["version"], &traced[0]["state"]["balance"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(node.get("/account/a/state/1").await.0, 200);
    let (status, body) = node.get("/account/a/state/3").await;
    assert_eq!(
        (status, body["errorCode"].as_str()),
        (400, Some("wow.aggregate.version-not-reached"))
    );
    assert_eq!(node.get("/account/nobody/state").await.0, 404);
    node.stop().await;
}

#[actix_web::test]
async fn r10_r11_creation_and_deletion_guard_the_routes() {
    let node = start().await;
    node.create("a").await;
    let again = node.post(
        "/account/create_account",
        &json!({"name": "x", "balance": 1}),
    );
    let again = again.header("Command-Aggregate-Id", "a");
    assert_eq!(
        failure(again).await,
        (409, "wow.aggregate.exists".to_owned())
    );
    let missing = node.post("/account/b/entry", &json!({"amount": 1}));
    assert_eq!(
        failure(missing).await,
        (404, "wow.aggregate.not-found".to_owned())
    );

    let tags = node
        .request(Method::PUT, "/account/a/tags")
        .json(&json!({"tags": {"k": ["v"]}}));
    assert_eq!(answer(tags).await.0, 200);
    assert_eq!(
        node.get("/account/a/snapshot").await.1["tags"],
        json!({"k": ["v"]})
    );
    assert_eq!(
        answer(node.request(Method::DELETE, "/account/a")).await.0,
        200
    );
    assert_eq!(node.get("/account/a/state").await.0, 404);
    let deleted = node.post("/account/a/entry", &json!({"amount": 1}));
    assert_eq!(
        failure(deleted).await,
        (410, "wow.aggregate.deleted".to_owned())
    );
    assert_eq!(
        answer(node.request(Method::PUT, "/account/a/recover"))
            .await
            .0,
        200
    );
    assert_eq!(node.get("/account/a/state").await.0, 200);
    node.stop().await;
}

#[actix_web::test]
async fn a_cart_is_its_owners_and_needs_no_id() {
    let node = start().await;
    let (status, result) = answer(node.request(Method::PUT, "/owner/o-1/cart/view_cart")).await;
    assert_eq!(
        (status, &result["aggregateId"], &result["ownerId"]),
        (200, &json!("o-1"), &json!("o-1"))
    );
    let by_header = node.post("/cart/add_cart_item", &json!({"quantity": 1}));
    let (_, result) = answer(by_header.header("Command-Owner-Id", "o-1")).await;
    assert_eq!(result["aggregateVersion"], 2);
    assert_eq!(
        node.get("/owner/o-1/cart/state").await,
        (200, json!({"balance": 0}))
    );
    let nobody = node.post("/cart/add_cart_item", &json!({"quantity": 1}));
    assert_eq!(
        failure(nobody).await,
        (400, "wow.command.identity-invalid".to_owned())
    );
    node.stop().await;
}

#[actix_web::test]
async fn variables_of_path_and_header_fill_the_body() {
    let node = start().await;
    let order = node.post("/tenant/t/owner/o/sales-order", &json!({"total": u64::MAX}));
    let (status, result) = answer(order).await;
    assert_eq!(
        (status, &result["tenantId"], &result["ownerId"]),
        (200, &json!("t"), &json!("o"))
    );
    let path = format!(
        "/tenant/t/owner/o/sales-order/{}/items/i%20-1",
        result["aggregateId"].as_str().unwrap()
    );
    let pick = node.request(Method::PATCH, &path).header("X-Picker", "bob");
    assert_eq!(answer(pick).await.0, 200);
    let pick = node.request(Method::PATCH, &path);
    let (status, body) = answer(pick).await;
    assert_eq!(
        (status, body["errorCode"].as_str()),
        (400, Some("wow.command.body-invalid"))
    );
    node.stop().await;
}

#[actix_web::test]
async fn r64_every_stage_is_streamed_and_the_last_one_ends_it() {
    let node = start().await;
    let body = json!({"name": "source", "balance": 100});
    let request = node.post("/account/create_account", &body);
    let response = request
        .header("Accept", "text/event-stream")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert!(names.ends_with(&["PROCESSED", "SNAPSHOT"]), "{text}");
    let bad = node.post("/account/nobody/entry", &json!({"amount": "x"}));
    let text = bad
        .header("Accept", "text/event-stream")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["wow.command.body-invalid"], "{text}");
    node.stop().await;
}

#[actix_web::test]
async fn the_facade_sends_whatever_it_is_told() {
    let node = start().await;
    let body = json!({"name": "source", "balance": 100});
    let request = node
        .post("/wow/command/send", &body)
        .header("Command-Type", "create_account");
    let (status, result) = answer(request.header("Command-Wait-Stage", "processed")).await;
    assert_eq!((status, &result["stage"]), (200, &json!("PROCESSED")));
    node.stop().await;
}

#[actix_web::test]
async fn bad_input_gets_its_code_and_changes_nothing() {
    let node = start().await;
    node.create("a").await;
    let json_type = |body: Vec<u8>| {
        let request = node.request(Method::PUT, "/account/a/entry").body(body);
        request.header("Content-Type", "application/json")
    };
    let deep = format!("{{\"amount\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for body in [
        &b""[..],
        b"{",
        b"{\"amount\":1",
        b"{\"amount\":1}}",
        b"{\"amount\":1,\"amount\":2}",
        b"{\"amount\":1,\"more\":2}",
        b"{\"amount\":\"1\"}",
        b"{\"amount\":1.5}",
        b"{\"amount\":9223372036854775808}",
        b"{\"amount\":1e999}",
        b"{\"amount\":NaN}",
        b"{\"amount\":null}",
        b"{\"\xff\":1}",
        b"[]",
        deep.as_bytes(),
    ] {
        let text = String::from_utf8_lossy(body).into_owned();
        let code = failure(json_type(body.to_vec())).await;
        assert_eq!(code, (400, "wow.command.body-invalid".to_owned()), "{text}");
    }
    let entry = || json_type(b"{\"amount\":1}".to_vec());
    let long = "x".repeat(129);
    for (name, value, code) in [
        ("Command-Request-Id", "", "wow.command.request-id-invalid"),
        (
            "Command-Request-Id",
            "wow:s:x",
            "wow.command.request-id-invalid",
        ),
        (
            "Command-Request-Id",
            &long,
            "wow.command.request-id-invalid",
        ),
        ("Command-Aggregate-Id", "b", "wow.command.identity-conflict"),
        ("Command-Tenant-Id", "t", "wow.command.identity-conflict"),
        ("Command-Space-Id", &long, "wow.command.identity-invalid"),
        ("Command-Space-Id", "a/b", "wow.command.identity-invalid"),
        (
            "Command-Wait-Stage",
            "PROJECTED",
            "wow.wait.stage-unavailable",
        ),
        (
            "Command-Wait-Stage",
            "LATER",
            "wow.command.parameter-invalid",
        ),
        (
            "Command-Wait-Timeout",
            "-1",
            "wow.command.parameter-invalid",
        ),
        ("Command-Header-wow-x", "1", "wow.command.parameter-invalid"),
    ] {
        let found = failure(entry().header(name, value)).await;
        assert_eq!(found, (400, code.to_owned()), "{name}: {value}");
    }
    let stale = entry().header("Command-Aggregate-Version", "7");
    assert_eq!(
        failure(stale).await,
        (409, "wow.command.version-mismatch".to_owned())
    );
    assert_eq!(node.get("/account/a/snapshot").await.1["version"], 1);
    node.stop().await;
}

#[actix_web::test]
async fn r34_a_node_whose_system_stopped_refuses_commands_and_reads_on() {
    let node = start().await;
    node.create("a").await;
    assert_eq!(node.system.stop().await.unfinished, 0);
    let url = |path: &str| format!("{}{path}", node.base);
    let entry = node
        .client
        .post(url("/account/a/entry"))
        .json(&json!({"amount": 1}));
    assert_eq!(
        failure(entry).await,
        (503, "wow.node.shutting-down".to_owned())
    );
    assert_eq!(failure(node.client.get(url("/health/ready"))).await.0, 503);
    assert_eq!(
        answer(node.client.get(url("/account/a/state"))).await.0,
        200
    );
    node.stopper.stop(Stop::Graceful).await;
    node.server.await.unwrap().unwrap();
}
