//! A command sent to its own route (spec/03): one submission, and either its result or the
//! stream of its stages.
//!
//! A connection that drops ends the wait here and nothing else: what was admitted runs to its end
//! in its lane (R55).

use std::sync::Arc;

use actix_web::http::header::{ACCEPT, HeaderMap};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use tracing::Level;
use wow_kernel::registry::{AggregateDefinition, CommandDefinition};
use wow_kernel::submission::{Body, Submission, Target};

use super::body::{self, BodyLimits};
use super::edge::Edge;
use super::error::Refusal;
use super::extract::{self, PathValues};
use super::headers::RequestHeaders;
use super::{render, sse, trace};

/// Answers a request to a command's route.
pub(super) async fn answer(
    edge: &Edge,
    request: &HttpRequest,
    payload: Payload,
    (aggregate, command): (&Arc<AggregateDefinition>, &Arc<CommandDefinition>),
    path: PathValues<'_>,
) -> HttpResponse {
    let target = Target::Named {
        context: Some(aggregate.context.to_string()),
        aggregate: Some(aggregate.spec.name.to_owned()),
        command: command.name.to_string(),
    };
    let submission = async {
        let headers = RequestHeaders::read(request.headers())?;
        let submission = extract::submission(edge, &headers, target, Some(command), path).await?;
        with_body(edge, request, &headers, payload, submission).await
    };
    submit(edge, request, submission.await).await
}

/// Adds the body, the last thing to be read: a caller who proves nothing isn't listened to.
///
/// # Errors
/// Why the body can't be had.
pub(super) async fn with_body(
    edge: &Edge,
    request: &HttpRequest,
    headers: &RequestHeaders<'_>,
    payload: Payload,
    mut submission: Submission,
) -> Result<Submission, Refusal> {
    let limits = BodyLimits {
        bytes_max: edge.settings.body_bytes_max,
        timeout: edge.settings.body_timeout,
    };
    submission.body = Body::Json(body::read(request, headers, payload, limits).await?);
    Ok(submission)
}

/// Submits, and answers as the caller asked: once, or with every stage.
pub(super) async fn submit(
    edge: &Edge,
    request: &HttpRequest,
    submission: Result<Submission, Refusal>,
) -> HttpResponse {
    let streams = wants_stream(request.headers());
    let submission = match submission {
        Ok(submission) => submission,
        Err(refusal) if streams => return sse::refused(&refusal),
        Err(refusal) => return render::refusal(&refusal),
    };
    let trace_id = tracing::enabled!(Level::DEBUG)
        .then(|| trace::trace_id(&submission.headers).map(str::to_owned))
        .flatten();
    if streams {
        tracing::debug!(trace_id, "a command's stages are streamed");
        return sse::stages(edge.gateway.stream(submission));
    }
    match edge.gateway.submit(submission).await {
        Ok(result) => {
            tracing::debug!(
                trace_id,
                command_id = %result.command_id,
                request_id = %result.request_id,
                error = result.error.as_ref().map(|error| error.code()).as_deref(),
                "a command is answered"
            );
            render::command_result(&result)
        }
        Err(error) => {
            tracing::debug!(trace_id, error = &*error.code(), "a request is refused");
            render::refusal(&error.into())
        }
    }
}

/// Whether the caller prefers a stream of events to one JSON answer: by quality, then by which
/// of the two it names first.
fn wants_stream(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(ACCEPT)
        .filter_map(|value| value.to_str().ok());
    let ranges: Vec<_> = values.flat_map(|value| value.split(',')).collect();
    let stream = preference(&ranges, "text/event-stream", "text/*");
    let json = preference(&ranges, "application/json", "application/*");
    stream.quality > 0
        && (stream.quality, std::cmp::Reverse(stream.place))
            > (json.quality, std::cmp::Reverse(json.place))
}

/// How much a caller wants a media type.
#[derive(Debug, Default)]
struct Preference {
    /// In thousandths.
    quality: u16,
    /// Where it stands among what the caller accepts.
    place: usize,
}

/// What the most exact of the ranges that hold a media type says of it.
fn preference(ranges: &[&str], media: &str, family: &str) -> Preference {
    let mut best = (0, Preference::default());
    for (place, range) in ranges.iter().enumerate() {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or("");
        let exactness = match name {
            _ if name.eq_ignore_ascii_case(media) => 3,
            _ if name.eq_ignore_ascii_case(family) => 2,
            "*/*" => 1,
            _ => continue,
        };
        if exactness > best.0 {
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            best = (
                exactness,
                Preference {
                    quality: quality.map_or(1000, thousandths),
                    place,
                },
            );
        }
    }
    best.1
}

/// A quality of `0` to `1` with at most three digits, in thousandths; anything else counts as 0.
fn thousandths(text: &str) -> u16 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit()) && fraction.len() <= 3;
    match (whole, digits) {
        ("1", true) => 1000,
        ("0", true) => format!("{fraction:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn a_stream_is_sent_only_to_those_who_prefer_it() {
        for (accept, expected) in [
            ("text/event-stream", true),
            ("Text/Event-Stream", true),
            ("text/event-stream, application/json;q=0.9", true),
            ("application/json, text/event-stream", false),
            ("text/event-stream, application/json", true),
            ("application/json;q=0.8, text/event-stream", true),
            ("text/event-stream, */*", true),
            ("*/*, text/event-stream", false),
            ("text/*", true),
            ("*/*;q=0.1, text/event-stream;q=0.2", true),
            ("application/json, text/event-stream;q=0.5", false),
            ("text/event-stream;q=0", false),
            ("application/json", false),
            ("*/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).unwrap());
            assert_eq!(wants_stream(&headers), expected, "{accept}");
        }
        assert!(!wants_stream(&HeaderMap::new()));
    }
}
