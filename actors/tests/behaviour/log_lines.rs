//! The log lines of one command share its ids (style guide, Tracing).

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use wow_kernel::submission::Submission;

use crate::support::nasty::{Explode, Relay, TRANSFORMER_PANICS};
use crate::support::{World, code, note, paused, to};

/// Every line, with the fields of the spans around it.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Fields>>>);

#[derive(Clone, Default)]
struct Fields(Vec<(String, String)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(span.extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Fields::default();
        event.record(&mut line);
        for span in context.event_scope(event).into_iter().flatten() {
            let extensions = span.extensions();
            line.0.extend(extensions.get::<Fields>().unwrap().0.clone());
        }
        self.0.lock().push(line);
    }
}

impl Lines {
    fn saying(&self, text: &str) -> Vec<Fields> {
        let lines = self.0.lock();
        let said = |line: &&Fields| line.get("message").is_some_and(|said| said.contains(text));
        lines.iter().filter(said).cloned().collect()
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn traced(submission: Submission) -> Submission {
    submission.header("traceparent", format!("00-{TRACE}-b7ad6b7169203331-01"))
}

#[test]
fn a_commands_lines_carry_its_id_its_type_and_its_trace() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    tracing::subscriber::with_default(subscriber, || {
        paused(async {
            let world = World::new();
            let node = world.here().start().await;
            let how = "decide".to_owned();
            let answer = node.handle.submit(traced(to("a", Explode { how }))).await;
            assert_eq!(code(&answer), "wow.command.panicked");
            let line = &lines.saying("the command function panicked")[0];
            let id = answer.unwrap().command_id.to_string();
            assert_eq!(line.get("command_id"), Some(id.as_str()));
            assert_eq!(line.get("trace_id").unwrap().trim_matches('"'), TRACE);
            assert_eq!(line.get("aggregate_type"), Some("nasty"));
            let command_type = line.get("command_type").unwrap();
            assert_eq!(command_type.trim_matches('"'), "explode");

            // In admission there is no command yet, and a trace already.
            let refused = node.run(traced(note("a", TRANSFORMER_PANICS))).await;
            assert_eq!(code(&refused), "wow.command.panicked");
            let line = &lines.saying("user code panicked during admission")[0];
            assert_eq!(line.get("trace_id").unwrap().trim_matches('"'), TRACE);
            assert_eq!(line.get("command_id"), None);

            // What it sends belongs to the same trace.
            let path = vec!["b".to_owned()];
            let gate = String::new();
            assert_eq!(
                code(&node.run(traced(to("a", Relay { path, gate }))).await),
                "Ok"
            );
            let nested = &world.commits("nasty", "b").await[0];
            assert!(nested.headers["traceparent"].contains(TRACE));
            node.stop().await;
        });
    });
}
