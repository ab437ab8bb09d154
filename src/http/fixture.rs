//! What the tests of this module stand on: a registry with every kind of type, a gateway that
//! records what it is given and answers what it is told, and an app over both.

mod domain;
mod recorder;

use std::sync::Arc;
use std::time::Duration;

use actix_web::App;
use actix_web::dev::Service;
use actix_web::test::{TestRequest, init_service};
use actix_web::web::{self, Data};
use serde_json::Value;

pub(super) use domain::{Noted, aggregate, command, registry, spec};
pub(super) use recorder::{Asked, OneToken, Recorder, result};

use super::edge::{Edge, serve};
use super::settings::HttpSettings;

/// Settings small enough to reach the bounds in a test.
pub(super) fn settings() -> HttpSettings {
    HttpSettings {
        body_bytes_max: 1000,
        uri_bytes_max: 500,
        header_bytes_max: 60_000,
        body_timeout: Duration::from_secs(5),
        workers: 1,
        ..HttpSettings::new(([127, 0, 0, 1], 0).into())
    }
}

/// What came of a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: actix_web::http::header::HeaderMap,
    pub(super) body: String,
}

impl Answer {
    /// The body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    /// A header's text; empty where it isn't there.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("headers are ASCII"))
    }

    /// The error's code, which header and body must agree about.
    pub(super) fn code(&self) -> String {
        let code = self.header("wow-error-code").to_owned();
        if self.status >= 400 {
            assert_eq!(self.json()["errorCode"], code.as_str(), "{self:?}");
            assert_eq!(self.json()["succeeded"], false);
        }
        code
    }
}

/// Sends one request to a new app over the recorder.
pub(super) async fn send(recorder: &Arc<Recorder>, request: TestRequest) -> Answer {
    let edge = Edge::new(settings(), registry(), recorder.clone(), Arc::new(OneToken));
    let edge = Data::new(edge.expect("the routes fit together"));
    let app = init_service(App::new().app_data(edge).default_service(web::to(serve))).await;
    let response = app
        .call(request.to_request())
        .await
        .expect("every request is answered");
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = actix_web::body::to_bytes(response.into_body()).await;
    let body = body.map_err(|_| "body").expect("the body is whole");
    Answer {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).expect("bodies are UTF-8"),
    }
}
