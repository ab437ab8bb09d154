//! `wow serve`: runs the node until it is told to stop.

use clap::Args;
use tokio_util::sync::CancellationToken;
use wow::node::{NodeError, StopSignal};
use wow::prelude::*;
use wow::storage::OpenError;

use super::Global;
use super::error::Failure;
use super::output;
use crate::domains;

/// Run the node until SIGTERM or SIGINT
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wow serve
  wow serve --set http.bind=127.0.0.1:0
  WOW__STORAGE__URL=memory: wow serve")]
pub(super) struct ServeArguments {}

pub(super) fn run(_arguments: &ServeArguments, global: Global) -> Result<(), Failure> {
    let config = global.load()?;
    wow::telemetry::begin(&wow::node::settings::telemetry(&config))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // First of all, so that a stop is in order however early it comes.
        let mut signal = StopSignal::listen()?;
        let give_up = CancellationToken::new();
        let start = NodeBuilder::from_config(config)
            .types(domains::register)
            .services(domains::provide)
            .give_up_on(give_up.clone())
            .start();
        let mut start = std::pin::pin!(start);
        let node = tokio::select! {
            started = &mut start => started?,
            _ = signal.received() => {
                // A start that waits for its database ends; any other is soon done.
                give_up.cancel();
                match start.await {
                    Ok(node) => {
                        node.stop().await;
                    }
                    Err(NodeError::Storage(OpenError::GivenUp)) => {}
                    Err(error) => return Err(error.into()),
                }
                return Ok(());
            }
        };
        output::print(&greeting(&node))?;
        node.run_until(signal).await;
        Ok(())
    })
}

/// One line for each address, and what to try first.
fn greeting(node: &Node) -> String {
    let addresses = node.addresses();
    let mut lines = Vec::new();
    for address in &addresses.http {
        lines.push(format!("http   http://{address}  (API: /swagger-ui/)"));
    }
    for address in &addresses.admin {
        lines.push(format!(
            "admin  http://{address}  (/metrics, /health/ready)"
        ));
    }
    if let Some(address) = addresses.http.first() {
        lines.push(format!(
            "try    curl -X POST http://{address}/account/create_account \
             -H 'Content-Type: application/json' -d '{{\"name\":\"Ada\",\"balance\":100}}'"
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}
