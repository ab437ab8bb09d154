//! `wow log`: reads the log from its database, beside a running node or without one.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use chrono::{DateTime, SecondsFormat};
use clap::{Args, Subcommand};
use wow::config::Config;
use wow::kernel::id::{AggregateId, AggregateKey, AggregateType, TenantId};
use wow::prelude::*;
use wow::storage::{Progress, Report, ShownCommit, StorageReader};

use super::error::Failure;
use super::reading::with_reader;
use super::{Global, output};
use crate::domains;

/// How many commits are read at once.
const PAGE: u32 = 500;

/// Show an aggregate's commits, or verify the whole log
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wow log show account 0198…\n  wow log verify")]
pub(super) struct LogArguments {
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    Show(ShowArguments),
    Verify(VerifyArguments),
}

/// Show the commits of one aggregate, oldest first; exits with 1 where it has none
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wow log show account 0198… --after 10 --json")]
struct ShowArguments {
    /// The aggregate type
    #[arg(value_name = "TYPE")]
    aggregate_type: String,
    /// The aggregate's id
    id: String,
    /// Its tenant
    #[arg(long, default_value = "(0)")]
    tenant: String,
    /// Only versions after this one
    #[arg(long, default_value_t = 0)]
    after: u64,
    /// At most so many commits
    #[arg(long, default_value_t = 1000)]
    limit: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Verify unique keys, versions, positions, ids, checkpoints, and snapshots against the log replayed;
/// exits with 1 where something is wrong
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wow log verify --json")]
struct VerifyArguments {
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: LogArguments, global: Global) -> Result<(), Failure> {
    with_reader(global, async |reader, config| match arguments.command {
        LogCommand::Show(arguments) => show(reader, &arguments).await,
        LogCommand::Verify(arguments) => verify(reader, config, &arguments).await,
    })
}

async fn show(reader: &StorageReader, arguments: &ShowArguments) -> Result<(), Failure> {
    // What was never an id has no commits either.
    let key = AggregateKey {
        tenant: TenantId::trusted(&*arguments.tenant),
        aggregate_type: AggregateType::trusted(&*arguments.aggregate_type),
        id: AggregateId::trusted(&*arguments.id),
    };
    let mut after = arguments.after;
    let mut left = arguments.limit;
    let mut commits = Vec::new();
    while left > 0 {
        let page = reader.show(&key, after, left.min(PAGE)).await?;
        let Some(last) = page.last() else { break };
        after = last.version;
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(left));
        if arguments.json {
            commits.extend(page);
        } else {
            output::print(&page.iter().map(line).collect::<String>())?;
        }
    }
    if arguments.json {
        output::print_json(&commits)?;
    }
    if after == arguments.after {
        eprintln!("wow: {key} has no commits after version {after}");
        return Err(Failure::Told);
    }
    Ok(())
}

/// A commit on one line, and each of its events on one below.
fn line(commit: &ShownCommit) -> String {
    let time = DateTime::from_timestamp_millis(commit.committed_at)
        .map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
        .unwrap_or_default();
    let sender = if commit.principal.is_empty() {
        "anonymous"
    } else {
        &*commit.principal
    };
    let mut text = format!(
        "{:>6}  {time}  {}  request {}  by {sender}\n",
        commit.version, commit.command_type, commit.request_id
    );
    for event in commit.events.iter() {
        writeln!(text, "        {} {}", event.name, event.body.get())
            .expect("writing to a string can't fail");
    }
    text
}

async fn verify(
    reader: &StorageReader,
    config: &Config,
    arguments: &VerifyArguments,
) -> Result<(), Failure> {
    let registry = domains::register(RegistryBuilder::new(config.context.name.as_str()))
        .build()
        .map_err(|faults| Failure::Node(wow::node::NodeError::Types(faults)))?;
    let is_watched = io::stderr().is_terminal();
    let mut progress = |progress: Progress| {
        if is_watched {
            // What can't be shown is only progress.
            let Progress { step, done, total } = progress;
            let _ = write!(io::stderr(), "\r{step:?} {done} of {total}\x1b[K");
        }
    };
    let report = reader.verify(Some(&registry), &mut progress).await?;
    if is_watched {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&told(&report))?;
    }
    if report.is_clean() {
        Ok(())
    } else {
        Err(Failure::Told)
    }
}

fn told(report: &Report) -> String {
    let mut text = format!(
        "{} entries of {} aggregates, {} snapshots ({} replayed), {} checkpoints\n",
        report.entries, report.aggregates, report.snapshots, report.replayed, report.checkpoints
    );
    for (reason, count) in &report.skipped {
        text.push_str(&format!("{count} snapshots not replayed: {reason}\n"));
    }
    for finding in &report.findings {
        text.push_str(&format!("wrong: {finding}\n"));
    }
    if report.more > 0 {
        text.push_str(&format!("and {} more\n", report.more));
    }
    for warning in &report.warnings {
        text.push_str(&format!("odd: {warning}\n"));
    }
    if report.more_warnings > 0 {
        text.push_str(&format!("and {} more that are odd\n", report.more_warnings));
    }
    if report.is_clean() {
        text.push_str("nothing is wrong\n");
    }
    text
}
