//! The facade, `POST /wow/command/send`: any command, named and addressed by headers. It is how
//! another service sends one.

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use wow_kernel::submission::{Submission, Target};

use super::command::{submit, with_body};
use super::edge::Edge;
use super::error::Refusal;
use super::extract::{self, PathValues};
use super::headers::{Known, RequestHeaders};

/// Answers a request to the facade.
pub(super) async fn answer(edge: &Edge, request: &HttpRequest, payload: Payload) -> HttpResponse {
    let submission = read(edge, request, payload).await;
    submit(edge, request, submission).await
}

async fn read(edge: &Edge, request: &HttpRequest, payload: Payload) -> Result<Submission, Refusal> {
    let headers = RequestHeaders::read(request.headers())?;
    let target = target(&headers)?;
    // The type comes first (R2); its definition says which headers are variables.
    let (_, command) = edge.registry.resolve(&target)?;
    let path = PathValues::none();
    let submission = extract::submission(edge, &headers, target, Some(&command), path).await?;
    with_body(edge, request, &headers, payload, submission).await
}

fn target(headers: &RequestHeaders<'_>) -> Result<Target, Refusal> {
    let command = extract::required(headers, Known::CommandType)?.to_owned();
    let name = |known| -> Result<Option<String>, Refusal> {
        match headers.get(known)? {
            Some(_) => Ok(Some(extract::required(headers, known)?.to_owned())),
            None => Ok(None),
        }
    };
    Ok(Target::Named {
        context: name(Known::AggregateContext)?,
        aggregate: name(Known::AggregateName)?,
        command,
    })
}
