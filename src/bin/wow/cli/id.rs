//! `wow id`: ids as the node makes them, for request ids and aggregate ids.

use std::fmt::Write as _;

use clap::Args;
use uuid::Uuid;

use super::error::Failure;
use super::output;

/// Make ids: UUIDs that sort by the time they were made
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wow id\n  wow id --count 3")]
pub(super) struct IdArguments {
    /// How many
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
}

pub(super) fn run(arguments: &IdArguments) -> Result<(), Failure> {
    let mut ids = String::new();
    for _ in 0..arguments.count {
        writeln!(ids, "{}", Uuid::now_v7()).expect("writing to a string can't fail");
    }
    Ok(output::print(&ids)?)
}
