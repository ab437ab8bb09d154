//! The page to try the API at: Swagger UI, built into the binary, reading our OpenAPI document.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_ENCODING, HeaderValue};
use utoipa_swagger_ui::Config;

use super::error::Refusal;
use super::render;

/// The page's files.
pub(super) struct Page {
    config: Arc<Config<'static>>,
}

impl Page {
    pub(super) fn new() -> Self {
        let config = Config::from("/v3/api-docs").try_it_out_enabled(true);
        Self {
            config: Arc::new(config),
        }
    }

    /// A file by its name; the page itself where the name is empty.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], where the page has no such file.
    pub(super) fn file(&self, name: &str) -> Result<HttpResponse, Refusal> {
        let file = match utoipa_swagger_ui::serve(name, self.config.clone()) {
            Ok(Some(file)) => file,
            Ok(None) => return Err(Refusal::NotFound),
            Err(error) => {
                tracing::error!(%error, name, "a file of the page can't be made");
                return Err(wow_kernel::error::CommandError::Internal.into());
            }
        };
        let content_type = HeaderValue::from_str(&file.content_type)
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        let mut response = render::succeeded(content_type, file.bytes.into_owned());
        if file.gzpipped {
            response
                .headers_mut()
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Ok(response)
    }
}
