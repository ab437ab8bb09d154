//! `wow serve`: runs the node until it is told to stop.

use clap::Args;
use wow::node::Addresses;
use wow::prelude::*;

use super::Global;
use super::error::Failure;
use crate::domains;

/// Run the node until SIGTERM or SIGINT
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wow serve
  wow serve --set http.bind=127.0.0.1:0
  WOW__STORAGE__URL=memory: wow serve")]
pub(super) struct ServeArguments {}

pub(super) fn run(_arguments: &ServeArguments, global: Global) -> Result<(), Failure> {
    let node = NodeBuilder::from_config(global.load()?);
    Ok(domains::node(node).serve(greeting)?)
}

/// One line for each address, and what to try first.
fn greeting(addresses: &Addresses) -> String {
    let mut text = addresses.to_string();
    if let Some(address) = addresses.http.first() {
        text.push_str(&format!(
            "try    curl -X POST http://{address}/account/create_account \
             -H 'Content-Type: application/json' -d '{{\"name\":\"Ada\",\"balance\":100}}'\n"
        ));
    }
    text
}
