//! The W3C trace context of a request: carried to the commit and its handlers when it is valid,
//! begun here when there is none.

use wow_kernel::commit::Headers;

/// The header with the trace id.
pub(super) const TRACEPARENT: &str = "traceparent";
/// The header with what vendors add to it.
pub(super) const TRACESTATE: &str = "tracestate";

/// The longest vendor part that is carried on; the standard asks for no more.
const TRACESTATE_BYTES_MAX: usize = 512;

/// Puts the trace context among the headers that a command keeps.
///
/// The standard has an invalid context ignored, not refused: tracing must never fail a request.
pub(super) fn carry(parent: Option<&str>, state: Option<&str>, headers: &mut Headers) {
    match parent.filter(|parent| is_valid(parent)) {
        Some(parent) => {
            headers.insert(TRACEPARENT.to_owned(), parent.to_owned());
            let fits = |state: &&str| {
                (1..=TRACESTATE_BYTES_MAX).contains(&state.len())
                    && state
                        .bytes()
                        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
            };
            if let Some(state) = state.filter(fits) {
                headers.insert(TRACESTATE.to_owned(), state.to_owned());
            }
        }
        None => {
            headers.insert(TRACEPARENT.to_owned(), begin(&rand::random()));
        }
    }
}

/// The trace id of a valid context.
pub(super) fn trace_id(headers: &Headers) -> Option<&str> {
    headers
        .get(TRACEPARENT)
        .and_then(|parent| parent.get(3..35))
}

/// A new context: nobody has recorded anything of it yet, so its flags are zero.
fn begin(random: &[u8; 24]) -> String {
    let mut parent = String::with_capacity(55);
    parent.push_str("00-");
    push_hex(&mut parent, &random[..16]);
    parent.push('-');
    push_hex(&mut parent, &random[16..]);
    parent.push_str("-00");
    parent
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Whether a text is `version-traceid-parentid-flags`, as the standard has it.
fn is_valid(parent: &str) -> bool {
    let is_hex = |part: &str, len: usize| {
        part.len() == len
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, len| is_hex(part, len) && part.bytes().any(|byte| byte != b'0');
    let mut parts = parent.splitn(5, '-');
    let mut next = || parts.next().unwrap_or("");
    let version = next();
    let known = is_hex(version, 2)
        && version != "ff"
        && is_id(next(), 32)
        && is_id(next(), 16)
        && is_hex(next(), 2);
    // Only later versions may have more parts.
    known && (parts.next().is_none() || version != "00")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn carried(parent: Option<&str>, state: Option<&str>) -> Headers {
        let mut headers = Headers::new();
        carry(parent, state, &mut headers);
        headers
    }

    #[test]
    fn a_valid_trace_context_is_carried_on_as_it_came() {
        let headers = carried(Some(PARENT), Some("a=1,b=2"));
        assert_eq!(headers[TRACEPARENT], PARENT);
        assert_eq!(headers[TRACESTATE], "a=1,b=2");
        assert_eq!(trace_id(&headers), Some("0af7651916cd43dd8448eb211c80319c"));
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
        assert_eq!(carried(Some(later), None)[TRACEPARENT], later);
    }

    #[test]
    fn an_invalid_trace_context_is_replaced_and_its_state_dropped() {
        for bad in [
            "",
            "garbage",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        ] {
            let headers = carried(Some(bad), Some("a=1"));
            assert!(is_valid(&headers[TRACEPARENT]), "{bad}");
            assert_ne!(headers[TRACEPARENT], bad);
            assert!(!headers.contains_key(TRACESTATE));
        }
    }

    #[test]
    fn a_request_without_trace_context_begins_one_of_its_own() {
        let (one, other) = (carried(None, None), carried(None, None));
        assert!(is_valid(&one[TRACEPARENT]), "{one:?}");
        assert_ne!(one[TRACEPARENT], other[TRACEPARENT]);
    }
}
