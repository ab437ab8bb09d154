//! A client of the public or the admin port.

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// Sends requests to one address, over connections that it keeps.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// A client of an address such as `http://127.0.0.1:8080`.
    pub(crate) fn new(base: &str) -> Self {
        Self {
            http: reqwest::Client::new(),
            base: base.to_owned(),
        }
    }

    /// A request, without a body yet.
    pub(crate) fn request(&self, method: Method, path: &str) -> Request {
        Request(self.http.request(method, format!("{}{path}", self.base)))
    }

    pub(crate) fn get(&self, path: &str) -> Request {
        self.request(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Request {
        Request(self.request(Method::POST, path).0.json(body))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Request {
        Request(self.request(Method::PUT, path).0.json(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Request {
        self.request(Method::DELETE, path)
    }

    /// Creates an account.
    pub(crate) async fn create_account(&self, id: &str, balance: i64) -> Value {
        let body = serde_json::json!({"name": id, "balance": balance});
        let request = self.post("/account/create_account", &body);
        request.header("Command-Aggregate-Id", id).ok().await
    }

    /// The state at a path such as `/account/a`.
    pub(crate) async fn state(&self, aggregate: &str) -> Value {
        self.get(&format!("{aggregate}/state")).ok().await
    }
}

/// A request about to be sent.
#[derive(Debug)]
#[must_use = "a request is sent when it is told so"]
pub(crate) struct Request(RequestBuilder);

impl Request {
    /// Adds a header, beside those of its name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.bytes_header(name, value.as_bytes())
    }

    /// Adds a header of any bytes.
    pub(crate) fn bytes_header(self, name: &str, value: &[u8]) -> Self {
        let value = HeaderValue::from_bytes(value).unwrap();
        Self(self.0.header(name, value))
    }

    /// A body of any bytes.
    pub(crate) fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self(self.0.body(body.into()))
    }

    /// A bearer token.
    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// Sends it.
    pub(crate) async fn send(self) -> Answer {
        self.try_send().await.unwrap()
    }

    /// Sends it to a node that may go away.
    pub(crate) async fn try_send(self) -> Result<Answer, reqwest::Error> {
        let response = self.0.send().await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = response.text().await?;
        Ok(Answer {
            status,
            headers,
            text,
        })
    }

    /// Sends it, and gives the body of the success that it has to be.
    pub(crate) async fn ok(self) -> Value {
        self.send().await.ok()
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// A header; empty where it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The error code, from the header that every answer has.
    pub(crate) fn code(&self) -> &str {
        self.header("Wow-Error-Code")
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The body of a success.
    pub(crate) fn ok(self) -> Value {
        assert_eq!((self.status, self.code()), (200, "Ok"), "{}", self.text);
        self.json()
    }

    /// The body of a refusal, whose header and body tell the same code.
    pub(crate) fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.text);
        let body = self.json();
        assert_eq!(body["errorCode"], code);
        assert_eq!(body["succeeded"], false);
        assert_ne!(body["errorMsg"], "");
        body
    }
}
