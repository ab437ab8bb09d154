//! What all requests share, and how one is answered: find its route, then let that answer.
//!
//! One handler serves every path. actix-web's own router would try one regular expression after
//! another for each request; the tree of [`super::routes`] takes one step a segment.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::http::header::{HeaderValue, LOCATION};
use actix_web::http::{ConnectionType, Method};
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use uuid::Uuid;
use wow_kernel::registry::Registry;

use super::activity::Activity;
use super::error::Refusal;
use super::extract::PathValues;
use super::gateway::{Authenticator, Gateway};
use super::page::Page;
use super::routes::{Endpoint, Found, Route, RouteError, RouteTable, Verb};
use super::settings::HttpSettings;
use super::{command, facade, health, metadata, openapi, read, render};

/// What the workers share.
pub(super) struct Edge {
    pub(super) settings: HttpSettings,
    pub(super) registry: Arc<Registry>,
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) authenticator: Arc<dyn Authenticator>,
    routes: RouteTable,
    metadata: Bytes,
    openapi: Bytes,
    page: Page,
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edge")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Edge {
    pub(super) fn new(
        settings: HttpSettings,
        registry: Arc<Registry>,
        gateway: Arc<dyn Gateway>,
        authenticator: Arc<dyn Authenticator>,
    ) -> Result<Self, Vec<RouteError>> {
        let routes = RouteTable::new(&registry)?;
        Ok(Self {
            metadata: metadata::document(&registry, &routes).into(),
            openapi: openapi::document(&registry, &routes).into(),
            page: Page::new(),
            settings,
            registry,
            gateway,
            authenticator,
            routes,
        })
    }

    fn check_size(&self, request: &HttpRequest) -> Result<(), Refusal> {
        let uri = request.uri();
        let target = uri
            .path_and_query()
            .map_or(0, |target| target.as_str().len());
        if target > self.settings.uri_bytes_max {
            return Err(Refusal::UriTooLong {
                limit: self.settings.uri_bytes_max,
            });
        }
        let sizes = request
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len());
        if sizes.sum::<usize>() > self.settings.header_bytes_max {
            return Err(Refusal::HeadersTooLarge {
                limit: self.settings.header_bytes_max,
            });
        }
        Ok(())
    }

    fn find<'p>(
        &self,
        path: &'p str,
        method: &Method,
    ) -> Result<(&Route, Vec<Cow<'p, str>>), Refusal> {
        match self.routes.find(path, Verb::of(method)) {
            Found::Route(route, values) => Ok((route, values)),
            Found::WrongVerb(verbs) => {
                let mut allow = Vec::new();
                for verb in verbs {
                    allow.push(verb.as_str());
                    if verb == Verb::Get {
                        allow.push("HEAD");
                    }
                }
                Err(Refusal::MethodNotAllowed {
                    allow: allow.join(", "),
                })
            }
            Found::Nothing => Err(Refusal::NotFound),
            Found::Unreadable => Err(Refusal::PathInvalid),
        }
    }

    async fn answer(&self, request: &HttpRequest, body: Payload) -> Result<HttpResponse, Refusal> {
        self.check_size(request)?;
        let path = request.uri().path();
        let (route, values) = self.find(path, request.method())?;
        let values = PathValues::new(&route.parameters, &values);
        match &route.endpoint {
            Endpoint::Command(aggregate, definition) => {
                Ok(command::answer(self, request, body, (aggregate, definition), values).await)
            }
            Endpoint::Facade => Ok(facade::answer(self, request, body).await),
            Endpoint::Read(aggregate, kind) => {
                read::answer(self, request, aggregate, *kind, values).await
            }
            Endpoint::Metadata => Ok(render::read(self.metadata.clone())),
            Endpoint::OpenApi => Ok(render::read(self.openapi.clone())),
            Endpoint::GlobalId => {
                let text = HeaderValue::from_static("text/plain; charset=utf-8");
                Ok(render::succeeded(text, Uuid::now_v7().to_string()))
            }
            // The page asks for its files by relative paths, so it needs the slash.
            Endpoint::Page if values.get("file").is_none() => {
                let mut response = HttpResponse::PermanentRedirect();
                response.insert_header((render::ERROR_CODE, super::error::OK));
                Ok(response.insert_header((LOCATION, "/swagger-ui/")).finish())
            }
            Endpoint::Page => self.page.file(values.get("file").unwrap_or_default()),
            Endpoint::Live => Ok(health::live()),
            Endpoint::Ready => health::ready(&*self.gateway),
        }
    }
}

/// Answers any request of the public port.
pub(super) async fn serve(request: HttpRequest, body: Payload, edge: Data<Edge>) -> HttpResponse {
    let activity = request.conn_data::<Rc<Activity>>();
    let under_way = activity.map(Activity::begin);
    let mut response = match edge.answer(&request, body).await {
        Ok(response) => response,
        Err(refusal) => render::refusal(&refusal),
    };
    if !edge.gateway.is_accepting() {
        // The balancer and the client's pool are to go elsewhere.
        response
            .head_mut()
            .set_connection_type(ConnectionType::Close);
    }
    match under_way {
        Some(under_way) => under_way.hold(response),
        None => response,
    }
}
