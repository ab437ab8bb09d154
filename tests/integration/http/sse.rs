//! The stages of a command as a stream of events (R64).

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Node};

/// An event of a stream.
#[derive(Debug)]
struct Event {
    id: String,
    name: String,
    data: Value,
}

/// Reads a stream that has ended: fields in lines, a blank line after each event, comments.
fn events(answer: &Answer) -> Vec<Event> {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let text = answer.text.strip_suffix("\n\n").unwrap();
    let blocks = text.split("\n\n").filter(|block| !block.starts_with(':'));
    blocks
        .map(|block| {
            let field = |name: &str| {
                let lines = block.lines();
                let values = lines.filter_map(|line| line.strip_prefix(&format!("{name}: ")));
                values.collect::<Vec<_>>().join("\n")
            };
            Event {
                id: field("id"),
                name: field("event"),
                data: serde_json::from_str(&field("data")).unwrap(),
            }
        })
        .collect()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[tokio::test]
async fn r64_each_stage_comes_as_an_event_in_order_and_then_the_stream_ends() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let body = json!({"name": "ann", "balance": 1});
    let create = client
        .post("/account/create_account", &body)
        .header("Accept", "text/event-stream");
    let events = events(&create.send().await);
    assert_eq!(names(&events).first(), Some(&"SENT"));
    assert_eq!(names(&events).last(), Some(&"SNAPSHOT"));
    // A saga that passes over the commit has handled it, before the snapshot or after it.
    let own = |name: &&str| *name != "SAGA_HANDLED";
    let stages: Vec<_> = names(&events).into_iter().filter(own).collect();
    assert_eq!(stages, ["SENT", "PROCESSED", "SNAPSHOT"]);
    let command = &events[0].data["commandId"];
    for event in &events {
        assert_eq!(event.data["stage"], event.name);
        assert_eq!(event.data["id"], event.id);
        assert_eq!(event.data["waitCommandId"], *command);
        assert_eq!(event.data["errorCode"], "Ok");
    }
    assert_eq!(events[1].data["aggregateVersion"], 1);
    let ids: std::collections::BTreeSet<_> = events.iter().map(|event| &event.id).collect();
    assert_eq!(ids.len(), events.len());
    node.stop().await;
}

#[tokio::test]
async fn r64_a_failed_stage_is_an_event_with_its_code() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let prepare = client
        .post("/account/nobody/prepare", &json!({"to": "x", "amount": 1}))
        .header("Accept", "text/event-stream");
    let events = events(&prepare.send().await);
    let last = events.last().unwrap();
    assert_eq!(last.data["errorCode"], "wow.aggregate.not-found");
    assert_eq!(last.data["succeeded"], false);
    assert!(
        names(&events)
            .iter()
            .all(|name| ["SENT", "PROCESSED"].contains(name))
    );
    node.stop().await;
}

#[tokio::test]
async fn r64_a_request_that_never_became_a_command_is_one_event_named_by_its_code() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let create = client
        .post(
            "/account/create_account",
            &json!({"name": "", "balance": -1}),
        )
        .header("Accept", "text/event-stream");
    let answer = create.send().await;
    let events = events(&answer);
    assert_eq!(names(&events), ["wow.command.invalid"]);
    assert_eq!(events[0].data["bindingErrors"].as_array().unwrap().len(), 2);
    node.stop().await;
}

#[tokio::test]
async fn the_facade_streams_too() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    let send = client
        .post("/wow/command/send", &json!({"productId": "p"}))
        .header("Command-Type", "add_cart_item")
        .header("Command-Owner-Id", "ann")
        .header("Command-Wait-Stage", "PROCESSED")
        .header("Accept", "text/event-stream");
    let events = events(&send.send().await);
    assert_eq!(names(&events), ["SENT", "PROCESSED"]);
    assert_eq!(events[1].data["aggregateId"], "ann");
    node.stop().await;
}

#[tokio::test]
async fn r64_a_stream_shows_what_the_saga_has_done() {
    let folder = Folder::new();
    let node = Node::start(&folder).await;
    let client = node.client();
    client.create_account("ann", 10).await;
    client.create_account("bob", 0).await;
    let prepare = client
        .post("/account/ann/prepare", &json!({"to": "bob", "amount": 1}))
        .header("Command-Wait-Stage", "SAGA_HANDLED")
        .header("Accept", "text/event-stream");
    let events = events(&prepare.send().await);
    assert_eq!(names(&events).first(), Some(&"SENT"));
    assert_eq!(names(&events).last(), Some(&"SAGA_HANDLED"));
    let last = events.last().unwrap();
    assert_eq!(last.data["function"]["processorName"], "TransferSaga");
    assert_eq!(client.state("/account/bob").await["balanceAmount"], 1);
    node.stop().await;
}
