//! The body of a request: JSON, bounded in size and in the time it takes to arrive.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::web::Payload;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use wow_kernel::error::CommandError;

use super::error::Refusal;
use super::headers::{Known, RequestHeaders};

/// What a body may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Its size in bytes.
    pub(super) bytes_max: usize,
    /// How long it may take to arrive.
    pub(super) timeout: Duration,
}

/// Reads the body, which may be empty.
///
/// # Errors
/// [`Refusal`]: no JSON, too large (known before all of it was read), too slow, or broken.
pub(super) async fn read(
    request: &HttpRequest,
    headers: &RequestHeaders<'_>,
    payload: Payload,
    limits: BodyLimits,
) -> Result<Bytes, Refusal> {
    let too_large = || CommandError::BodyTooLarge {
        limit: limits.bytes_max,
    };
    let length = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let declared = length.and_then(|length| length.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limits.bytes_max) {
        return Err(too_large().into());
    }
    let body = tokio::time::timeout(limits.timeout, gather(payload, declared, limits.bytes_max))
        .await
        .map_err(|_| Refusal::BodyTimeout)??;
    // A form or text that a page may send anywhere without asking is no command, whatever it holds.
    if !body.is_empty() && !is_json(request, headers)? {
        return Err(Refusal::UnsupportedMediaType);
    }
    Ok(body)
}

async fn gather(
    mut payload: Payload,
    declared: Option<usize>,
    bytes_max: usize,
) -> Result<Bytes, Refusal> {
    let Some(first) = payload.next().await else {
        return Ok(Bytes::new());
    };
    let first = first.map_err(|_| Refusal::BodyBroken)?;
    // Most bodies come in one piece and need no copy.
    if declared == Some(first.len()) {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(declared.unwrap_or(0).max(first.len()));
    let mut chunk = first;
    loop {
        if whole.len() + chunk.len() > bytes_max {
            return Err(CommandError::BodyTooLarge { limit: bytes_max }.into());
        }
        whole.extend_from_slice(&chunk);
        match payload.next().await {
            Some(next) => chunk = next.map_err(|_| Refusal::BodyBroken)?,
            None => return Ok(whole.freeze()),
        }
    }
}

/// Whether the body says that it is JSON in UTF-8, as it stands.
fn is_json(request: &HttpRequest, headers: &RequestHeaders<'_>) -> Result<bool, CommandError> {
    let encoded = request.headers().get(CONTENT_ENCODING);
    if encoded.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(false);
    }
    Ok(headers.get(Known::ContentType)?.is_some_and(names_json))
}

fn names_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or("").to_ascii_lowercase();
    let json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    json && parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
            value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_in_utf_8_counts_as_json() {
        for good in [
            "application/json",
            "Application/JSON; charset=UTF-8",
            "application/json;charset=\"utf-8\"",
            "application/problem+json",
        ] {
            assert!(names_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "application/json; charset=latin1",
        ] {
            assert!(!names_json(bad), "{bad}");
        }
    }
}
