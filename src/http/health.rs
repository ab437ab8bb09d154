//! Whether the process lives, and whether the node runs what it owns (spec/03).

use actix_web::HttpResponse;

use super::error::Refusal;
use super::gateway::Gateway;
use super::render;

const UP: &str = r#"{"status":"UP"}"#;

/// The process answers, so it lives.
pub(super) fn live() -> HttpResponse {
    render::read(UP)
}

/// Whether requests should be sent here.
///
/// # Errors
/// [`Refusal::NotReady`], where they should not: 503.
pub(super) fn ready(gateway: &dyn Gateway) -> Result<HttpResponse, Refusal> {
    if gateway.is_ready() {
        Ok(render::read(UP))
    } else {
        Err(Refusal::NotReady)
    }
}
