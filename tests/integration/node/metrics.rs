//! The metrics of a running node, read strictly.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::exposition::Exposition;
use crate::support::{Folder, Node};

/// The closed set that a label's values are from.
fn closed_set(label: &str) -> &'static [&'static str] {
    match label {
        "aggregate_type" => &["account", "cart", "order"],
        "kind" => &[
            "request",
            "history",
            "probe",
            "aggregate",
            "partition",
            "snapshot",
            "snapshot_version",
            "head",
            "checkpoint",
        ],
        "outcome" => &[
            "committed",
            "duplicate",
            "unchanged",
            "rejected",
            "failed",
            "sent",
            "conflict",
            "refused",
            "unavailable",
            "unknown",
        ],
        "reason" => &["lane_queue", "in_flight", "waiters", "log_writer"],
        "stage" => &[
            "SENT",
            "PROCESSED",
            "SNAPSHOT",
            "PROJECTED",
            "EVENT_HANDLED",
            "SAGA_HANDLED",
        ],
        "state" => &["busy", "idle"],
        "subscription" => &["snapshot", "TransferSaga", "CartSaga"],
        "version" => &[env!("CARGO_PKG_VERSION")],
        _ => &[],
    }
}

async fn scrape(node: &Node) -> Exposition {
    let answer = node.admin().get("/metrics").send().await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    Exposition::parse(&answer.text).unwrap()
}

#[tokio::test]
async fn metrics_follow_the_format_and_tell_what_happened() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("secret-id", 100).await;
    let body = json!({"to": "nobody", "amount": 1});
    let prepare = client.post("/account/secret-id/prepare", &body);
    prepare
        .header("Command-Wait-Stage", "SAGA_HANDLED")
        .ok()
        .await;
    let too_much = json!({"to": "nobody", "amount": 1000});
    let refused = client
        .post("/account/secret-id/prepare", &too_much)
        .send()
        .await;
    refused.refused(400, "account.insufficient-balance");
    for _ in 0..2 {
        let body = json!({"productId": "p"});
        let add = client.post("/owner/secret-owner/cart/add_cart_item", &body);
        add.header("Command-Request-Id", "secret-request")
            .ok()
            .await;
    }

    let page = scrape(&node).await;
    let commands = |aggregate_type, outcome| {
        let labels = [("aggregate_type", aggregate_type), ("outcome", outcome)];
        page.value("wow_commands_total", &labels)
    };
    assert_eq!(commands("account", "rejected"), Some(1.0));
    assert_eq!(commands("cart", "committed"), Some(1.0));
    assert_eq!(commands("cart", "duplicate"), Some(1.0));
    // Its creation, the transfer, and the money that came back from nobody.
    assert!(commands("account", "committed") >= Some(3.0));
    let answered = |stage| page.value("wow_command_duration_seconds_count", &[("stage", stage)]);
    assert_eq!(answered("SAGA_HANDLED"), Some(1.0));
    assert!(answered("SNAPSHOT") >= Some(4.0));
    let entries = page.value("wow_storage_batch_entries_sum", &[]);
    assert!(entries >= Some(4.0), "{entries:?}");
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    assert_eq!(page.value("wow_build_info", &version), Some(1.0));
    node.stop().await;
}

#[tokio::test]
async fn the_first_set_of_metrics_is_there_before_anything_has_happened() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let page = scrape(&node).await;
    for (name, kind) in [
        ("wow_build_info", "gauge"),
        ("wow_commands_total", "counter"),
        ("wow_command_duration_seconds", "histogram"),
        ("wow_commands_in_flight", "gauge"),
        ("wow_append_conflicts_total", "counter"),
        ("wow_lanes", "gauge"),
        ("wow_waits_open", "gauge"),
        ("wow_storage_batch_entries", "histogram"),
        ("wow_storage_writer_queue", "gauge"),
    ] {
        let family = page
            .0
            .get(name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(family.kind, kind, "{name}");
    }
    for state in ["busy", "idle"] {
        assert!(page.value("wow_lanes", &[("state", state)]).is_some());
    }
    node.stop().await;
}

#[tokio::test]
async fn names_units_and_labels_keep_to_the_rules() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("secret-id", 100).await;
    let missing = client.post(
        "/account/secret-other/prepare",
        &json!({"to": "x", "amount": 1}),
    );
    missing.send().await.refused(404, "wow.aggregate.not-found");
    let page = scrape(&node).await;
    let mut faults = BTreeSet::new();
    for (name, family) in &page.0 {
        if !name.starts_with("wow_") || family.help.is_empty() || !family.help.ends_with('.') {
            faults.insert(format!("{name}: name and help"));
        }
        if (family.kind == "counter") != name.ends_with("_total") {
            faults.insert(format!("{name}: counters and only they end in _total"));
        }
        if ["_ms", "_millis", "_seconds_total", "_kb"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            faults.insert(format!("{name}: base units"));
        }
        for sample in &family.samples {
            for (label, value) in sample.labels.iter().filter(|(label, _)| *label != "le") {
                if !closed_set(label).contains(&value.as_str()) {
                    faults.insert(format!("{name}: {label}={value} is from no closed set"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    node.stop().await;
}

#[tokio::test]
async fn the_public_port_has_no_metrics_and_the_admin_port_no_commands() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    node.client()
        .get("/metrics")
        .send()
        .await
        .refused(404, "wow.http.not-found");
    for path in [
        "/account/create_account",
        "/wow/command/send",
        "/wow/metadata",
        "/v3/api-docs",
    ] {
        let answer = node
            .admin()
            .post(path, &json!({"name": "x", "balance": 1}))
            .send()
            .await;
        assert_eq!(answer.status, 404, "{path}");
    }
    node.stop().await;
}

#[tokio::test]
async fn an_admin_token_is_asked_for_before_metrics_and_not_before_health() {
    let folder = Folder::new();
    std::fs::write(folder.path("token"), "0123456789abcdef0123456789abcdef").unwrap();
    let node = Node::start_with(&folder, &["admin.token-file=token"]).await;
    let admin = node.admin();
    assert_eq!(admin.get("/metrics").send().await.status, 401);
    assert_eq!(
        admin.get("/metrics").token("wrong").send().await.status,
        401
    );
    let token = "0123456789abcdef0123456789abcdef";
    assert_eq!(admin.get("/metrics").token(token).send().await.status, 200);
    assert_eq!(admin.get("/health/ready").send().await.status, 200);
    node.stop().await;
}
