//! The node that is loaded: behind a URL, or in this process.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use wow::prelude::*;

use crate::domains::{AddCartItem, CreateAccount};

/// How long one answer may take, beyond what the node itself allows a wait.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// One command.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    /// An account.
    Create,
    /// An item, into the cart of an owner.
    Add { cart: String },
}

/// What came of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It reached its stage.
    Done,
    /// It was turned away, for too much is going on.
    Busy,
}

/// Why a node can't be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// No answer.
    #[error("the node doesn't answer: {0}; is it running? `wow serve` starts one")]
    Http(#[from] reqwest::Error),
    /// An answer that is no success.
    #[error("the node answers {status}: {body}")]
    Status {
        /// Its status.
        status: StatusCode,
        /// Its body.
        body: String,
    },
    /// A command failed in this process.
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// A node to load.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Http { client: Client, base: String },
    InProcess(Handle),
}

impl Target {
    /// The node behind a URL, with a connection kept for each client.
    ///
    /// # Errors
    /// When a client can't be made.
    pub(super) fn over_http(url: &str, clients: u32) -> Result<Self, TargetError> {
        let connections = usize::try_from(clients).unwrap_or(usize::MAX);
        let client = Client::builder()
            .pool_max_idle_per_host(connections)
            .tcp_nodelay(true)
            .no_proxy()
            .timeout(ANSWER_TIMEOUT)
            .build()?;
        let base = url.trim_end_matches('/').to_owned();
        Ok(Self::Http { client, base })
    }

    /// The node of a handle.
    pub(super) fn in_process(handle: Handle) -> Self {
        Self::InProcess(handle)
    }

    /// Sends a command, and waits until it has reached the stage.
    ///
    /// # Errors
    /// Whatever is neither a success nor "busy".
    pub(super) async fn send(&self, ask: Ask, stage: Stage) -> Result<Outcome, TargetError> {
        match self {
            Self::Http { client, base } => send_http(client, base, &ask, stage).await,
            Self::InProcess(handle) => send_in_process(handle, ask, stage).await,
        }
    }
}

async fn send_http(
    client: &Client,
    base: &str,
    ask: &Ask,
    stage: Stage,
) -> Result<Outcome, TargetError> {
    let (path, body) = http_request(ask);
    let request = client
        .post(format!("{base}{path}"))
        .header("Command-Wait-Stage", stage.as_str())
        .json(&body);
    let response = request.send().await?;
    let status = response.status();
    // Read to its end, so that the connection can be used again.
    let body = response.bytes().await?;
    match status {
        StatusCode::OK => Ok(Outcome::Done),
        StatusCode::TOO_MANY_REQUESTS => Ok(Outcome::Busy),
        status => Err(TargetError::Status {
            status,
            body: String::from_utf8_lossy(&body).into_owned(),
        }),
    }
}

fn http_request(ask: &Ask) -> (String, Value) {
    match ask {
        Ask::Create => (
            "/account/create_account".to_owned(),
            json!({"name": "bench", "balance": 100}),
        ),
        Ask::Add { cart } => (
            format!("/owner/{cart}/cart/add_cart_item"),
            json!({"productId": "bench", "quantity": 1}),
        ),
    }
}

async fn send_in_process(handle: &Handle, ask: Ask, stage: Stage) -> Result<Outcome, TargetError> {
    let sent = match ask {
        Ask::Create => {
            let (name, balance) = ("bench".to_owned(), 100);
            handle
                .send(CreateAccount { name, balance })
                .wait(stage)
                .await
        }
        Ask::Add { cart } => {
            let (product_id, quantity) = ("bench".to_owned(), 1);
            let add = AddCartItem {
                product_id,
                quantity,
            };
            handle.send(add).owner(cart).wait(stage).await
        }
    };
    match sent {
        Ok(_) => Ok(Outcome::Done),
        Err(CommandError::Busy { .. }) => Ok(Outcome::Busy),
        Err(error) => Err(error.into()),
    }
}
