//! The stages of a command as server-sent events (R64): one event a signal, and a comment now and
//! then so that nobody between takes the connection for dead.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use uuid::Uuid;
use wow_kernel::error::CommandError;
use wow_kernel::result::CommandResult;

use super::error::{OK, Refusal};
use super::render::{self, ERROR_CODE};

/// How long a stream is silent before a comment is sent.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

/// Proxies that gather answers before they send them on know this one.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

type Signals = Receiver<Result<CommandResult, CommandError>>;

/// Answers with every stage as it comes.
///
/// When the client goes, the receiver is dropped with the answer's body, and the wait ends.
pub(super) fn stages(signals: Signals) -> HttpResponse {
    let body = stream::unfold(Some(signals), |signals| async move {
        let mut signals = signals?;
        let (text, last) = match timeout(COMMENT_EVERY, signals.recv()).await {
            Err(_) => (Bytes::from_static(b":\n\n"), false),
            Ok(None) => return None,
            Ok(Some(Ok(result))) => (signal(&result), result.error.is_some()),
            Ok(Some(Err(error))) => (failure(&error.into()), true),
        };
        Some((Ok::<_, Infallible>(text), (!last).then_some(signals)))
    });
    begin(HeaderValue::from_static(OK)).streaming(body)
}

/// Answers with the one event of a request that became nothing.
///
/// The status stays 200, for whoever reads a stream learns from its events what happened.
pub(super) fn refused(refusal: &Refusal) -> HttpResponse {
    begin(render::code_value(&refusal.code())).body(failure(refusal))
}

fn begin(code: HeaderValue) -> actix_web::HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((ERROR_CODE, code))
        .insert_header((CONTENT_TYPE, HeaderValue::from_static("text/event-stream")))
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-cache")))
        .insert_header((NO_BUFFERING, HeaderValue::from_static("no")));
    response
}

fn signal(result: &CommandResult) -> Bytes {
    let id = Uuid::now_v7();
    event(id, result.stage.as_str(), &render::result_json(result, id))
}

fn failure(refusal: &Refusal) -> Bytes {
    event(
        Uuid::now_v7(),
        &refusal.code(),
        &render::refusal_json(refusal),
    )
}

fn event(id: Uuid, name: &str, data: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(data.len() + 96);
    text.extend_from_slice(b"id: ");
    text.extend_from_slice(
        id.hyphenated()
            .encode_lower(&mut Uuid::encode_buffer())
            .as_bytes(),
    );
    text.extend_from_slice(b"\nevent: ");
    // A domain's code may hold anything; a line break would end the field.
    text.extend(
        name.bytes()
            .map(|byte| if byte.is_ascii_control() { b'_' } else { byte }),
    );
    // Likewise a result map that was written over several lines.
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        text.extend_from_slice(b"\ndata: ");
        text.extend_from_slice(line);
    }
    text.extend_from_slice(b"\n\n");
    text.into()
}

#[cfg(test)]
mod tests;
