//! Answers: a `CommandResult` or an error as JSON, the error's code in a header of its own.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use actix_web::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;
use wow_kernel::id::{CommandId, EpochMillis, Version};
use wow_kernel::model::BindingError;
use wow_kernel::result::CommandResult;
use wow_kernel::wait::{FunctionInfo, FunctionKind, Stage};

use super::error::{OK, Refusal, retry_after_of, status_of};

/// The header with the error's code, on every answer.
pub(super) const ERROR_CODE: HeaderName = HeaderName::from_static("wow-error-code");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultJson<'a> {
    id: Uuid,
    wait_command_id: CommandId,
    stage: Stage,
    context_name: &'a str,
    aggregate_name: &'a str,
    tenant_id: &'a str,
    owner_id: &'a str,
    space_id: &'a str,
    aggregate_id: &'a str,
    aggregate_version: Option<Version>,
    request_id: &'a str,
    command_id: CommandId,
    function: FunctionJson<'a>,
    error_code: Cow<'static, str>,
    error_msg: String,
    binding_errors: Vec<BindingError>,
    result: ResultMap<'a>,
    signal_time: EpochMillis,
    succeeded: bool,
    duplicate: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionJson<'a> {
    function_kind: FunctionKind,
    context_name: &'a str,
    processor_name: &'a str,
    name: &'a str,
}

impl<'a> From<&'a FunctionInfo> for FunctionJson<'a> {
    fn from(function: &'a FunctionInfo) -> Self {
        Self {
            function_kind: function.kind,
            context_name: &function.context,
            processor_name: &function.processor,
            name: &function.name,
        }
    }
}

/// The result map as the domain wrote it, or an empty one.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultMap<'a> {
    Given(&'a RawValue),
    Empty {},
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusalJson<'a> {
    error_code: &'a str,
    error_msg: String,
    binding_errors: Vec<BindingError>,
    succeeded: bool,
}

/// Writes a value as JSON.
pub(super) fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(1024);
    serde_json::to_writer(&mut buffer, value)
        .expect("the answers' own types have text keys and a buffer takes every byte");
    buffer
}

/// The body of a command's answer, and of a signal; `id` names this answer.
pub(super) fn result_json(result: &CommandResult, id: Uuid) -> Vec<u8> {
    let error = result.error.as_ref();
    to_json(&ResultJson {
        id,
        wait_command_id: result.wait_command_id,
        stage: result.stage,
        context_name: &result.context,
        aggregate_name: result.aggregate_name,
        tenant_id: result.tenant.as_str(),
        owner_id: result.owner.as_str(),
        space_id: result.space.as_str(),
        aggregate_id: result.aggregate_id.as_str(),
        aggregate_version: result.aggregate_version,
        request_id: result.request_id.as_str(),
        command_id: result.command_id,
        function: (&*result.function).into(),
        error_code: error.map_or(Cow::Borrowed(OK), |error| error.code()),
        error_msg: error.map(ToString::to_string).unwrap_or_default(),
        binding_errors: error
            .map(|error| error.binding_errors())
            .unwrap_or_default(),
        result: result
            .result
            .as_deref()
            .map_or(ResultMap::Empty {}, ResultMap::Given),
        signal_time: result.signal_time,
        succeeded: error.is_none(),
        duplicate: result.duplicate,
    })
}

/// The body of a refusal.
pub(super) fn refusal_json(refusal: &Refusal) -> Vec<u8> {
    to_json(&RefusalJson {
        error_code: &refusal.code(),
        error_msg: refusal.to_string(),
        binding_errors: refusal.binding_errors(),
        succeeded: false,
    })
}

/// A code as a header value; domain code may choose what a header can't hold.
pub(super) fn code_value(code: &str) -> HeaderValue {
    HeaderValue::from_str(code).unwrap_or_else(|_| {
        let visible = |c: char| if c.is_ascii_graphic() { c } else { '_' };
        let text: String = code.chars().map(visible).collect();
        HeaderValue::from_str(&text).expect("visible ASCII makes a header value")
    })
}

fn begin(status: StatusCode, code: HeaderValue, retry_after: Option<u32>) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response.insert_header((ERROR_CODE, code));
    if let Some(seconds) = retry_after {
        response.insert_header((RETRY_AFTER, HeaderValue::from(seconds)));
    }
    if status == StatusCode::UNAUTHORIZED {
        response.insert_header((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
    }
    response
}

/// An answer without error.
pub(super) fn succeeded(content_type: HeaderValue, body: impl Into<Bytes>) -> HttpResponse {
    begin(StatusCode::OK, HeaderValue::from_static(OK), None)
        .insert_header((CONTENT_TYPE, content_type))
        .body(body.into())
}

/// What was read, as JSON. It may be another tomorrow, and another caller's.
pub(super) fn read(body: impl Into<Bytes>) -> HttpResponse {
    begin(StatusCode::OK, HeaderValue::from_static(OK), None)
        .insert_header((CONTENT_TYPE, JSON))
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .body(body.into())
}

/// The answer to a command that became one.
pub(super) fn command_result(result: &CommandResult) -> HttpResponse {
    let mut response = match &result.error {
        None => begin(StatusCode::OK, HeaderValue::from_static(OK), None),
        Some(error) => begin(
            status_of(error),
            code_value(&error.code()),
            retry_after_of(error),
        ),
    };
    let body = result_json(result, Uuid::now_v7());
    response.insert_header((CONTENT_TYPE, JSON)).body(body)
}

/// The answer to a request that became nothing.
pub(super) fn refusal(refusal: &Refusal) -> HttpResponse {
    let mut response = begin(
        refusal.status(),
        code_value(&refusal.code()),
        refusal.retry_after(),
    );
    if let Refusal::MethodNotAllowed { allow } = refusal {
        response.insert_header((ALLOW, allow.as_str()));
    }
    response
        .insert_header((CONTENT_TYPE, JSON))
        .body(refusal_json(refusal))
}

#[cfg(test)]
mod tests;
