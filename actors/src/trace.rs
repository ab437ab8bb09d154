//! The span that joins a command's log lines, from admission to the end of its lane's work.

use tracing::Span;
use tracing::field::{Empty, display};
use wow_kernel::command::BuiltCommand;
use wow_kernel::commit::Headers;

/// The span of a command that is about to be admitted. Where nobody listens it costs a look at a
/// static, and names nothing.
pub(crate) fn command_span(headers: &Headers) -> Span {
    let span = tracing::info_span!(
        "command",
        command_id = Empty,
        trace_id = Empty,
        aggregate_type = Empty,
        command_type = Empty,
    );
    if !span.is_disabled()
        && let Some(trace_id) = headers.get("traceparent").and_then(|text| trace_id(text))
    {
        span.record("trace_id", trace_id);
    }
    span
}

/// Says which command it has become.
pub(crate) fn name_command(span: &Span, command: &BuiltCommand) {
    if !span.is_disabled() {
        span.record("command_id", display(command.command_id));
        span.record("aggregate_type", display(&command.key().aggregate_type));
        span.record("command_type", &**command.command_type());
    }
}

/// The trace id in a W3C `traceparent`: the second of its parts.
fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_taken_from_a_traceparent_and_from_nothing_else() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let traceparent = format!("00-{id}-b7ad6b7169203331-01");
        assert_eq!(trace_id(&traceparent), Some(id));
        for odd in [
            "",
            "00",
            "00-short-b7ad6b7169203331-01",
            id,
            &"-é".repeat(40),
        ] {
            assert_eq!(trace_id(odd), None, "{odd}");
        }
    }
}
