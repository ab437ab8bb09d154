//! `wow members`: who is in the cluster, from the leases in storage.

use clap::Args;
use serde::Serialize;
use wow::kernel::assignment::assigned;
use wow::kernel::id::NodeName;
use wow::kernel::ports::{Member, MemberState};
use wow::storage::Ownership;

use super::error::Failure;
use super::reading::with_reader;
use super::{Global, output};

/// Show the members of the cluster: their leases, and how many partitions each owns
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wow members
  wow members --json | jq '.[] | select(.state == \"expired\")'")]
pub(super) struct MembersArguments {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// A member as it is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownMember<'v> {
    name: &'v str,
    /// `live`, `draining`, or `expired`.
    state: &'static str,
    /// The leases that it holds.
    owns: usize,
    /// The partitions that the assignment gives it.
    should_own: usize,
    address: &'v str,
    /// For how long its lease is valid.
    lease_millis: u128,
    incarnation: String,
    protocol_min: u16,
    protocol_max: u16,
}

pub(super) fn run(arguments: &MembersArguments, global: Global) -> Result<(), Failure> {
    with_reader(global, async |reader, _config| {
        let ownership = reader.ownership().await?;
        let members = shown(&ownership);
        if arguments.json {
            return Ok(output::print_json(&members)?);
        }
        if members.is_empty() {
            let told = "no node shares this database: none has started, or it is one node's own\n";
            return Ok(output::print(told)?);
        }
        Ok(output::print(&table(&members))?)
    })
}

fn shown(ownership: &Ownership) -> Vec<ShownMember<'_>> {
    let candidates = candidates(ownership);
    let should_own = |name: &NodeName| {
        let partitions = ownership.partitions.iter();
        let of = |partition| assigned(partition, candidates.iter().copied()) == Some(name);
        partitions.filter(|reach| of(reach.partition)).count()
    };
    let members = ownership.members.iter();
    members
        .map(|member| ShownMember {
            name: member.name.as_str(),
            state: state(member),
            owns: (ownership.leases.values())
                .filter(|lease| lease.owner == Some((member.name.clone(), member.incarnation)))
                .count(),
            should_own: should_own(&member.name),
            address: &member.address,
            lease_millis: member.valid_for.as_millis(),
            incarnation: member.incarnation.to_string(),
            protocol_min: member.protocol_min,
            protocol_max: member.protocol_max,
        })
        .collect()
}

/// Whom the assignment shares the partitions among (R71).
pub(super) fn candidates(ownership: &Ownership) -> Vec<&NodeName> {
    let members = ownership.members.iter();
    members
        .filter(|member| state(member) == "live")
        .map(|member| &member.name)
        .collect()
}

pub(super) fn state(member: &Member) -> &'static str {
    match (member.valid_for.is_zero(), member.state) {
        (true, _) => "expired",
        (false, MemberState::Live) => "live",
        (false, MemberState::Draining) => "draining",
    }
}

fn table(members: &[ShownMember<'_>]) -> String {
    let header = ["NAME", "STATE", "OWNS", "SHOULD OWN", "LEASE", "ADDRESS"].map(str::to_owned);
    let row = |member: &ShownMember<'_>| {
        [
            member.name.to_owned(),
            member.state.to_owned(),
            member.owns.to_string(),
            member.should_own.to_string(),
            format!("{:.1} s", member.lease_millis as f64 / 1000.0),
            member.address.to_owned(),
        ]
    };
    output::table(header, members.iter().map(row))
}
