//! The body: from bytes to a decoded, valid command (R5).
//!
//! Path and header variables are put into the text as text. No value passes through a number
//! type on its way to the decoder, so what a client sent is what the command's type reads.

use std::borrow::Cow;

use super::identity::MarkedId;
use super::json::{self, Document};
use crate::command::Payload;
use crate::error::CommandError;
use crate::model::{CommandSpec, Variable, VariableSource};
use crate::registry::{BodyFault, CommandDefinition};
use crate::submission::{Body, Source, VariableValue};

/// The longest path and the longest reason that an answer repeats, in characters.
const PATH_CHARS_MAX: usize = 256;
const REASON_CHARS_MAX: usize = 512;

/// The fields of the body that admission itself looks at: the marked id and the variables.
pub(super) fn scan<'a>(bytes: &'a [u8], spec: &CommandSpec) -> Result<Document<'a>, BodyFault> {
    json::scan(bytes, &|name| {
        spec.id_field == Some(name) || spec.variables.iter().any(|known| known.field == name)
    })
}

/// The marked aggregate id of a body, before access is judged and so before decoding (R3).
/// A body that can't be read is not reported here, but by [`read`].
pub(super) fn marked_id<'a>(
    body: &'a Body,
    definition: &CommandDefinition,
    bytes_max: usize,
) -> MarkedId<'a> {
    let bytes = match (body, definition.spec.id_field) {
        (Body::Typed(payload), _) => {
            return definition
                .aggregate_id(payload)
                .map_or(MarkedId::Absent, |id| MarkedId::Present(Cow::Owned(id)));
        }
        (Body::Json(_), None) => return MarkedId::Absent,
        (Body::Json(bytes), Some(_)) if is_missing(bytes) => return MarkedId::Absent,
        (Body::Json(bytes), Some(_)) if bytes.len() > bytes_max => return MarkedId::Unreadable,
        (Body::Json(bytes), Some(_)) => bytes,
    };
    let Ok(document) = scan(bytes, &definition.spec) else {
        return MarkedId::Unreadable;
    };
    match definition
        .spec
        .id_field
        .and_then(|field| document.field(field))
    {
        None | Some("null") => MarkedId::Absent,
        Some(value) => match json::unquoted(value) {
            Some(text) => MarkedId::Present(text),
            // A number is an id by its digits; anything else the decoder will refuse.
            None if value.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                MarkedId::Present(Cow::Borrowed(value))
            }
            None => MarkedId::Unreadable,
        },
    }
}

/// The variable that fills the field that the command marks, where one came.
pub(super) fn marked_variable<'a>(
    variables: &'a [VariableValue],
    spec: &CommandSpec,
) -> Option<(Source, &'a str)> {
    let declared = spec
        .variables
        .iter()
        .find(|known| Some(known.field) == spec.id_field)?;
    let found = variables.iter().find(|value| is_meant(declared, value))?;
    let source = match found.source {
        VariableSource::Path => Source::Path,
        VariableSource::Header => Source::Header,
    };
    Some((source, &found.value))
}

/// Decodes and validates a body (R5).
///
/// # Errors
/// [`CommandError::BodyTooLarge`], [`CommandError::BodyInvalid`] with the path of the bad field,
/// [`CommandError::ParameterInvalid`] for a variable that came twice, and
/// [`CommandError::Invalid`] with every broken rule.
pub(super) fn read(
    body: &Body,
    variables: &[VariableValue],
    definition: &CommandDefinition,
    bytes_max: usize,
) -> Result<Payload, CommandError> {
    let payload = match body {
        Body::Typed(payload) => payload.clone(),
        Body::Json(bytes) if bytes.len() > bytes_max => {
            return Err(CommandError::BodyTooLarge { limit: bytes_max });
        }
        Body::Json(bytes) => decode(bytes, variables, definition)?,
    };
    let errors = definition.validate(&payload);
    if errors.is_empty() {
        Ok(payload)
    } else {
        Err(CommandError::Invalid { errors })
    }
}

fn decode(
    bytes: &[u8],
    variables: &[VariableValue],
    definition: &CommandDefinition,
) -> Result<Payload, CommandError> {
    let mut given = given_variables(&definition.spec, variables)?;
    let bytes = match (is_missing(bytes), definition.spec.empty_body) {
        (false, _) => bytes,
        (true, Some(empty)) => empty.as_bytes(),
        (true, None) if !given.is_empty() => b"{}",
        (true, None) => return Err(refused(whole("a body is needed"))),
    };
    let document = scan(bytes, &definition.spec).map_err(refused)?;
    // The decoder would take an array for the fields in their order.
    if !document.is_object() {
        return Err(refused(whole("an object is needed")));
    }
    if given.is_empty() {
        return definition.decode(document.text.as_bytes()).map_err(refused);
    }
    drop_repeated(&mut given, &document)?;
    loop {
        let text = filled(&document, &given);
        let fault = match definition.decode(text.as_bytes()) {
            Ok(payload) => return Ok(payload),
            Err(fault) => fault,
        };
        // A variable is text. Where its field takes no text, it is tried as what it spells.
        let retried = given.iter_mut().find(|variable| {
            !variable.is_bare
                && variable.field == fault.path
                && json::is_number_or_boolean(variable.text)
        });
        match retried {
            Some(variable) => variable.is_bare = true,
            None => return Err(refused(fault)),
        }
    }
}

/// A declared variable that came with the request.
struct Given<'a> {
    field: &'static str,
    text: &'a str,
    /// Whether the text goes into the body as it is, without quotes.
    is_bare: bool,
}

fn given_variables<'a>(
    spec: &CommandSpec,
    variables: &'a [VariableValue],
) -> Result<Vec<Given<'a>>, CommandError> {
    let mut given = Vec::new();
    for declared in spec.variables {
        let mut found = variables.iter().filter(|value| is_meant(declared, value));
        let Some(first) = found.next() else { continue };
        if found.any(|other| other.value != first.value) {
            return Err(CommandError::ParameterInvalid {
                name: declared.name.to_owned(),
                reason: "it was sent twice, with different values".to_owned(),
            });
        }
        given.push(Given {
            field: declared.field,
            text: &first.value,
            is_bare: false,
        });
    }
    Ok(given)
}

/// Whether a value is a declared variable's; the case of a header's name doesn't matter.
fn is_meant(declared: &Variable, value: &VariableValue) -> bool {
    declared.source == value.source
        && match value.source {
            VariableSource::Path => value.name == declared.name,
            VariableSource::Header => value.name.eq_ignore_ascii_case(declared.name),
        }
}

/// A body may repeat a variable, and never contradict it.
fn drop_repeated(given: &mut Vec<Given<'_>>, document: &Document<'_>) -> Result<(), CommandError> {
    let mut conflict = None;
    given.retain(|variable| match document.field(variable.field) {
        None => true,
        Some(value) => {
            let agrees = value == variable.text
                || json::unquoted(value).is_some_and(|text| text == variable.text);
            if !agrees {
                conflict.get_or_insert(variable.field);
            }
            false
        }
    });
    match conflict {
        None => Ok(()),
        Some(field) => Err(refused(BodyFault {
            path: field.to_owned(),
            reason: "the body and the request's path or header disagree".to_owned(),
        })),
    }
}

/// The body's text with the variables put before its own fields.
fn filled(document: &Document<'_>, given: &[Given<'_>]) -> String {
    let own = document.text[1..].trim_ascii_start();
    let size = given
        .iter()
        .map(|variable| variable.field.len() + variable.text.len() + 8);
    let mut text = String::with_capacity(own.len() + 1 + size.sum::<usize>());
    text.push('{');
    for (index, variable) in given.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&quoted(variable.field));
        text.push(':');
        match variable.is_bare {
            true => text.push_str(variable.text),
            false => text.push_str(&quoted(variable.text)),
        }
    }
    if !given.is_empty() && !own.starts_with('}') {
        text.push(',');
    }
    text.push_str(own);
    text
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn is_missing(bytes: &[u8]) -> bool {
    bytes.trim_ascii().is_empty()
}

fn whole(reason: &str) -> BodyFault {
    BodyFault {
        path: ".".to_owned(),
        reason: reason.to_owned(),
    }
}

fn refused(fault: BodyFault) -> CommandError {
    // The decoder's line and column count in the text with the variables, which nobody sent.
    let reason = match fault.reason.rfind(" at line ") {
        Some(end) => &fault.reason[..end],
        None => &fault.reason,
    };
    CommandError::BodyInvalid {
        path: shortened(&fault.path, PATH_CHARS_MAX),
        reason: shortened(reason, REASON_CHARS_MAX),
    }
}

fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
