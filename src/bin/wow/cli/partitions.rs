//! `wow partitions`: who owns each partition of the log, and how far it has come.

use std::collections::HashMap;

use clap::Args;
use serde::Serialize;
use wow::kernel::assignment::assigned;
use wow::kernel::id::NodeName;
use wow::storage::Ownership;

use super::error::Failure;
use super::members::{candidates, state};
use super::reading::with_reader;
use super::{Global, output};

/// Show each partition of the log: its owner, who should own it, its head, and what is not yet
/// handled; exits with 1 where --check is given and a partition is not where it should be
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wow partitions
  wow partitions --check --json")]
pub(super) struct PartitionsArguments {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// Fail where a partition isn't owned by the member that should own it
    #[arg(long)]
    check: bool,
}

/// A partition as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownPartition<'v> {
    partition: u32,
    /// Whose lease covers it; none when it is free.
    owner: Option<&'v str>,
    /// `owned`, `free`, or `expired` where the owner's lease has run out.
    state: &'static str,
    epoch: u64,
    should_own: Option<&'v str>,
    head: u64,
    /// Entries that its slowest subscription has not handled, as far as it has saved.
    lag: u64,
}

impl ShownPartition<'_> {
    fn is_settled(&self) -> bool {
        self.state == "owned" && self.owner == self.should_own
    }
}

pub(super) fn run(arguments: &PartitionsArguments, global: Global) -> Result<(), Failure> {
    with_reader(global, async |reader, _config| {
        let ownership = reader.ownership().await?;
        let partitions = shown(&ownership);
        match arguments.json {
            true => output::print_json(&partitions)?,
            false => output::print(&table(&partitions))?,
        }
        let astray = partitions.iter().filter(|shown| !shown.is_settled());
        match (arguments.check, astray.count()) {
            (true, astray) if astray > 0 => {
                eprintln!("wow: {astray} partitions are not owned by who should own them");
                Err(Failure::Told)
            }
            _ => Ok(()),
        }
    })
}

fn shown(ownership: &Ownership) -> Vec<ShownPartition<'_>> {
    let candidates = candidates(ownership);
    let states: HashMap<_, _> = (ownership.members.iter())
        .map(|member| ((&member.name, member.incarnation), state(member)))
        .collect();
    let partitions = ownership.partitions.iter();
    partitions
        .map(|reach| {
            let lease = ownership.leases.get(&reach.partition);
            let owner = lease.and_then(|lease| lease.owner.as_ref());
            let state = owner.map_or("free", |(name, incarnation)| {
                match states.get(&(name, *incarnation)) {
                    Some(&"expired") | None => "expired",
                    Some(_) => "owned",
                }
            });
            let should_own = assigned(reach.partition, candidates.iter().copied());
            ShownPartition {
                partition: reach.partition.0,
                owner: owner.map(|(name, _)| name.as_str()),
                state,
                epoch: lease.map_or(0, |lease| lease.epoch),
                should_own: should_own.map(NodeName::as_str),
                head: reach.head,
                lag: reach.head.saturating_sub(reach.handled.unwrap_or(0)),
            }
        })
        .collect()
}

fn table(partitions: &[ShownPartition<'_>]) -> String {
    let header = [
        "PARTITION",
        "OWNER",
        "STATE",
        "EPOCH",
        "SHOULD OWN",
        "HEAD",
        "LAG",
    ];
    let name = |name: Option<&str>| name.unwrap_or("-").to_owned();
    let row = |shown: &ShownPartition<'_>| {
        [
            shown.partition.to_string(),
            name(shown.owner),
            shown.state.to_owned(),
            shown.epoch.to_string(),
            name(shown.should_own),
            shown.head.to_string(),
            shown.lag.to_string(),
        ]
    };
    output::table(header.map(str::to_owned), partitions.iter().map(row))
}
