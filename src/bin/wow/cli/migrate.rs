//! `wow migrate`: brings the database's schema up to date.

use clap::Args;
use wow::config::Backend;

use super::error::Failure;
use super::{Global, output};

/// Bring the database's schema up to date; a node that runs on it has to be stopped first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wow migrate
  wow migrate --set storage.url=sqlite:///var/lib/wow/wow.db")]
pub(super) struct MigrateArguments {}

pub(super) fn run(_arguments: &MigrateArguments, global: Global) -> Result<(), Failure> {
    let config = global.load()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(wow::node::migrate(&config))?;
    let url = config.storage.url.redacted();
    let told = match config.storage.url.backend() {
        Backend::Memory => format!("{url} has no schema\n"),
        _ => format!("the schema of {url} is up to date\n"),
    };
    Ok(output::print(&told)?)
}
