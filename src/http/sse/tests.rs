#![allow(clippy::unwrap_used, reason = "tests")]

use actix_web::body::MessageBody;
use serde_json::Value;
use serde_json::value::RawValue;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc;
use wow_kernel::wait::Stage;

use super::*;
use crate::http::fixture::result;

/// An event as a client reads it: its id, name and data.
fn parse(text: &str) -> (String, String, Value) {
    let field = |name: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert!(text.ends_with("\n\n"), "{text:?}");
    (
        field("id: "),
        field("event: "),
        serde_json::from_str(&field("data: ")).unwrap(),
    )
}

async fn whole(response: HttpResponse) -> String {
    let body = actix_web::body::to_bytes(response.into_body()).await;
    String::from_utf8(body.map_err(|_| "body").unwrap().to_vec()).unwrap()
}

async fn streamed(items: Vec<Result<CommandResult, CommandError>>) -> Vec<String> {
    let (sender, receiver) = mpsc::channel(8);
    for item in items {
        sender.try_send(item).unwrap();
    }
    drop(sender);
    let text = whole(stages(receiver)).await;
    text.split_inclusive("\n\n").map(str::to_owned).collect()
}

fn at(stage: Stage) -> CommandResult {
    CommandResult { stage, ..result() }
}

#[actix_web::test]
async fn r64_every_stage_is_an_event_named_by_it() {
    let stages = [Stage::Sent, Stage::Processed, Stage::Snapshot];
    let events = streamed(stages.map(|stage| Ok(at(stage))).to_vec()).await;
    assert_eq!(events.len(), 3);
    for (event, stage) in events.iter().zip(stages) {
        let (id, name, data) = parse(event);
        assert_eq!(name, stage.as_str());
        assert_eq!(data["stage"], stage.as_str());
        assert_eq!(data["id"], id.as_str());
        assert_eq!(data["succeeded"], true);
    }
}

#[actix_web::test]
async fn a_failed_stage_is_an_event_with_its_code_inside_and_ends_the_stream() {
    let failed = CommandResult {
        error: Some(CommandError::Conflict),
        ..at(Stage::Processed)
    };
    let (sender, receiver) = mpsc::channel(8);
    sender.try_send(Ok(at(Stage::Sent))).unwrap();
    sender.try_send(Ok(failed)).unwrap();
    // The sender stays: it is the failure that ends the stream.
    let text = whole(stages(receiver)).await;
    let events: Vec<_> = text.split_inclusive("\n\n").collect();
    assert_eq!(events.len(), 2);
    let (_, name, data) = parse(events[1]);
    assert_eq!(name, "PROCESSED");
    assert_eq!(data["errorCode"], "wow.command.conflict");
    drop(sender);
}

#[actix_web::test]
async fn a_failure_before_any_signal_is_one_event_named_by_its_code() {
    for events in [
        streamed(vec![Err(CommandError::NotFound)]).await,
        vec![whole(refused(&CommandError::NotFound.into())).await],
    ] {
        assert_eq!(events.len(), 1);
        let (_, name, data) = parse(&events[0]);
        assert_eq!(name, "wow.aggregate.not-found");
        assert_eq!(data["errorCode"], "wow.aggregate.not-found");
        assert_eq!(data["succeeded"], false);
    }
}

#[actix_web::test]
async fn no_line_break_in_data_or_name_breaks_an_event() {
    let map = RawValue::from_string("{\n\"a\":\r\n1}".to_owned()).unwrap();
    let result = CommandResult {
        result: Some(Arc::from(map)),
        ..at(Stage::Processed)
    };
    let (_, _, data) = parse(&streamed(vec![Ok(result)]).await[0]);
    assert_eq!(data["result"]["a"], 1);
    let rejection = wow_kernel::model::Rejection::new("a\n\ndata: b", "no");
    let events = streamed(vec![Err(CommandError::Rejected(rejection))]).await;
    assert_eq!(events.len(), 1);
    assert_eq!(parse(&events[0]).1, "a__data: b");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_sends_a_comment_every_fifteen_seconds() {
    let (sender, receiver) = mpsc::channel(8);
    let mut body = pin!(stages(receiver).into_body());
    let begun = tokio::time::Instant::now();
    for comments in 1..=3 {
        let bytes = poll_fn(|context| body.as_mut().poll_next(context)).await;
        assert_eq!(bytes.unwrap().map_err(|_| "body").unwrap(), ":\n\n");
        assert_eq!(begun.elapsed(), COMMENT_EVERY * comments);
    }
    sender.try_send(Ok(at(Stage::Sent))).unwrap();
    let bytes = poll_fn(|context| body.as_mut().poll_next(context)).await;
    assert!(
        bytes
            .unwrap()
            .map_err(|_| "body")
            .unwrap()
            .starts_with(b"id: ")
    );
}

#[actix_web::test]
async fn r66_a_client_that_goes_ends_the_wait() {
    let (sender, receiver) = mpsc::channel::<Result<CommandResult, CommandError>>(8);
    drop(stages(receiver));
    assert!(sender.is_closed());
}
