//! What the transfer saga owes: an entry for each transfer, a confirmation for each entry, each
//! exactly once (R80, R83).

use std::collections::HashMap;

use super::Fault;
use crate::kill::ledger::{events, number, text};
use crate::support::database::{Log, LogRow};

/// A command that a saga has to send because of a commit.
struct Owed<'l> {
    /// The request id that R83 gives it.
    request: String,
    command_type: &'static str,
    target: &'l str,
    amount: i64,
}

fn owed(row: &LogRow) -> impl Iterator<Item = Owed<'_>> {
    let request = format!(
        "wow:s:example:TransferSaga:{}:{}:0",
        row.partition, row.position
    );
    events(row).filter_map(move |(name, body)| {
        let (command_type, target) = match name {
            "prepared" => ("entry", "to"),
            "amount_entered" => ("confirm", "sourceId"),
            _ => return None,
        };
        Some(Owed {
            request: request.clone(),
            command_type,
            target: text(body, target),
            amount: number(body, "amount"),
        })
    })
}

/// The saga's commits, by request id.
fn sent(log: &Log) -> HashMap<&str, &LogRow> {
    let sent = log
        .rows
        .iter()
        .filter(|row| row.request_id.starts_with("wow:"));
    sent.map(|row| (row.request_id.as_str(), row)).collect()
}

/// How much of what the saga owes is still to come.
pub(crate) fn unfinished(log: &Log) -> usize {
    let sent = sent(log);
    let owed = log.rows.iter().flat_map(owed);
    owed.filter(|owed| !sent.contains_key(owed.request.as_str()))
        .count()
}

pub(super) fn check(log: &Log) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut sent = sent(log);
    for owed in log.rows.iter().flat_map(owed) {
        match sent.remove(owed.request.as_str()) {
            None => faults.push(Fault::SagaMissing {
                request: owed.request,
            }),
            Some(row) => {
                let amount = events(row).next().map(|(_, body)| number(body, "amount"));
                let is = (row.command_type.as_str(), row.key.id.as_str(), amount);
                if is != (owed.command_type, owed.target, Some(owed.amount)) {
                    let (request, how) = (owed.request, format!("{row:?}"));
                    faults.push(Fault::Altered { request, how });
                }
            }
        }
    }
    let unasked = sent.into_keys();
    faults.extend(unasked.map(|request| Fault::Unasked {
        request: request.to_owned(),
    }));
    faults
}
