#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::{debug, error, field, info, info_span, warn};

use super::*;

/// A sink that the test owns.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(filter: &str, format: Format, work: impl FnOnce()) -> Buffer {
    let buffer = Buffer::default();
    let sink = buffer.clone();
    let settings = TelemetrySettings {
        filter: filter.to_owned(),
        format,
    };
    let subscriber = subscriber(&settings, move || sink.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    buffer
}

#[test]
fn the_lines_of_one_request_can_be_joined_by_command_and_trace() {
    let buffer = logged("info", Format::Json, || {
        let request = info_span!("request", trace_id = "t-1", command_id = field::Empty);
        let _in_request = request.enter();
        info!("received");
        request.record("command_id", "c-1");
        let _in_lane = info_span!("lane", partition = 7).entered();
        warn!(version = 3, "conflict");
    });
    let lines = buffer.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["trace_id"], "t-1");
    assert_eq!(lines[0]["message"], "received");
    assert_eq!(lines[0].get("command_id"), None, "not known yet");
    assert_eq!(lines[1]["trace_id"], "t-1");
    assert_eq!(lines[1]["command_id"], "c-1");
    assert_eq!(lines[1]["partition"], 7);
    assert_eq!(lines[1]["version"], 3);
    assert_eq!(lines[1]["level"], "WARN");
    assert_eq!(lines[1]["target"], "wow::telemetry::tests");
    assert!(lines[1]["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_json_line_is_flat_and_whole_whatever_its_fields_hold() {
    let buffer = logged("info", Format::Json, || {
        let _outer = info_span!("outer", version = 1, kept = true).entered();
        let _inner = info_span!("inner", version = 2).entered();
        info!(
            version = 3,
            level = "mine",
            nan = f64::NAN,
            text = "a\n\"b\"",
            big = u64::MAX,
            "m"
        );
    });
    let text = buffer.text();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    let line = &buffer.lines()[0];
    assert_eq!(line["version"], 3, "the nearest value stands");
    assert_eq!(line["kept"], true);
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["level_"], "mine");
    assert_eq!(line["nan"], Value::Null);
    assert_eq!(line["text"], "a\n\"b\"");
    assert_eq!(line["big"], u64::MAX);
    assert!(
        line.as_object()
            .unwrap()
            .values()
            .all(|value| !value.is_object())
    );
}

#[test]
fn an_error_is_logged_with_what_caused_it() {
    #[derive(Debug, thiserror::Error)]
    #[error("storage is unavailable")]
    struct Unavailable(#[source] io::Error);

    let buffer = logged("info", Format::Json, || {
        let cause = Unavailable(io::Error::other("connection refused"));
        error!(
            error = &cause as &(dyn std::error::Error + 'static),
            "append failed"
        );
    });
    assert_eq!(
        buffer.lines()[0]["error"],
        "storage is unavailable: connection refused"
    );
}

#[test]
fn the_filter_decides_what_is_logged() {
    let buffer = logged("warn,wow::telemetry=debug", Format::Json, || {
        debug!("ours");
        info!(target: "other", "theirs");
        warn!(target: "other", "theirs, and bad");
    });
    let messages: Vec<_> = buffer
        .lines()
        .iter()
        .map(|line| line["message"].clone())
        .collect();
    assert_eq!(messages, ["ours", "theirs, and bad"]);
}

#[test]
fn text_lines_carry_the_fields_of_their_spans_too() {
    let buffer = logged("info", Format::Text, || {
        let _in_request = info_span!("request", command_id = "c-1").entered();
        info!("received");
    });
    let text = buffer.text();
    assert!(
        text.contains("command_id=\"c-1\"") && text.contains("received"),
        "{text}"
    );
}

#[test]
fn a_filter_that_is_none_is_refused_with_what_to_write() {
    let settings = TelemetrySettings {
        filter: "info,=".to_owned(),
        format: Format::Json,
    };
    let Err(error) = subscriber(&settings, io::sink) else {
        panic!("it was taken")
    };
    assert!(
        error.to_string().starts_with("'info,=' is no log filter: "),
        "{error}"
    );
}
