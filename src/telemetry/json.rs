//! One flat JSON object a line: the event's fields beside those of the spans it lies in.

use std::error::Error;
use std::fmt;
use std::io::Write as _;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Names that every line has; a field of that name gets a `_` behind it.
const RESERVED: [&str; 3] = ["timestamp", "level", "target"];

/// Writes one line for each event.
pub(super) struct JsonLines<W> {
    sink: W,
}

impl<W> JsonLines<W> {
    pub(super) fn new(sink: W) -> Self {
        Self { sink }
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Fields::default();
        // From the outermost span inwards, so that the nearest value of a name stands.
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.clone());
            }
        }
        event.record(&mut line);
        let metadata = event.metadata();
        line.0.insert("timestamp".to_owned(), Value::from(now()));
        line.0
            .insert("level".to_owned(), Value::from(metadata.level().as_str()));
        line.0
            .insert("target".to_owned(), Value::from(metadata.target()));
        let mut text = Value::Object(line.0).to_string();
        text.push('\n');
        // A line that can't be written has nobody to be reported to.
        let _ = self
            .sink
            .make_writer_for(metadata)
            .write_all(text.as_bytes());
    }
}

fn now() -> String {
    let mut text = String::new();
    // Without a clock the line still stands, with an empty time.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let name = match field.name() {
            reserved if RESERVED.contains(&reserved) => format!("{reserved}_"),
            raw => raw.strip_prefix("r#").unwrap_or(raw).to_owned(),
        };
        self.0.insert(name, value.into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        self.put(field, text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}
