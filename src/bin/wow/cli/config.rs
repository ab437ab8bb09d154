//! `wow config`: checks and prints the configuration a node would run with here.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use wow::config::{Config, Origin};
use wow::prelude::*;

use super::error::Failure;
use super::{Global, output};
use crate::domains;

/// Check or print the configuration that a node would run with here
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wow config check\n  wow config print --config node.toml")]
pub(super) struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Report every fault of file, environment and flags; exits with 1 where there is one
    #[command(after_help = "Example:\n  wow config check --config node.toml")]
    Check {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every key with its value and where that comes from, secrets redacted
    #[command(after_help = "Example:\n  WOW__HTTP__BIND=[::1]:8080 wow config print")]
    Print {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(arguments: ConfigArguments, global: Global) -> Result<(), Failure> {
    match arguments.command {
        ConfigCommand::Check { json: false } => {
            check(global)?;
            Ok(output::print("the configuration is sound\n")?)
        }
        ConfigCommand::Check { json: true } => check_as_json(global),
        ConfigCommand::Print { json: false } => Ok(output::print(&global.load()?.print())?),
        ConfigCommand::Print { json: true } => Ok(output::print_json(&keys(&global.load()?))?),
    }
}

/// Refuses what `wow serve` refuses before it touches storage or a port.
fn check(global: Global) -> Result<(), Failure> {
    let node = domains::node(NodeBuilder::from_config(global.load()?));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(node.check())?)
}

fn check_as_json(global: Global) -> Result<(), Failure> {
    let faults: Vec<_> = match check(global) {
        Ok(()) => Vec::new(),
        Err(Failure::Config(error)) => error.faults().iter().map(ToString::to_string).collect(),
        Err(Failure::Node(NodeError::NotYet(missing))) => missing
            .into_iter()
            .map(|one| NodeError::NotYet(vec![one]).to_string())
            .collect(),
        Err(error) => vec![error.to_string()],
    };
    output::print_json(&json!({ "sound": faults.is_empty(), "faults": faults }))?;
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::Told),
    }
}

fn keys(config: &Config) -> Value {
    let line = |key: wow::config::PrintedKey| {
        let source = match &key.origin {
            Origin::Default => "default".to_owned(),
            set => set.to_string(),
        };
        // A value is a text, a number or a truth: written alike in TOML and JSON.
        let value: Value = serde_json::from_str(&key.value).unwrap_or(Value::String(key.value));
        json!({ "key": format!("{}.{}", key.section, key.key), "value": value, "source": source })
    };
    Value::Array(config.printed_keys().into_iter().map(line).collect())
}
