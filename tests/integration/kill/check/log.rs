//! The log by itself: versions, positions, heads, and what may be there only once.

use std::collections::{BTreeMap, HashSet};

use super::Fault;
use crate::kill::ledger::Ledger;
use crate::support::database::{Key, Log, LogRow};

pub(super) fn check(log: &Log) -> Vec<Fault> {
    let mut faults = Vec::new();
    check_positions(log, &mut faults);
    check_versions(log, &mut faults);
    check_once(log, &mut faults);
    check_money(log, &mut faults);
    faults
}

/// The rows of each aggregate, by version.
pub(super) fn by_aggregate(log: &Log) -> BTreeMap<&Key, Vec<&LogRow>> {
    let mut aggregates = BTreeMap::<_, Vec<_>>::new();
    for row in &log.rows {
        aggregates.entry(&row.key).or_default().push(row);
    }
    for rows in aggregates.values_mut() {
        rows.sort_by_key(|row| row.version);
    }
    aggregates
}

fn check_positions(log: &Log, faults: &mut Vec<Fault>) {
    let mut newest = BTreeMap::<i64, Vec<i64>>::new();
    for row in &log.rows {
        newest.entry(row.partition).or_default().push(row.position);
    }
    for (partition, positions) in &mut newest {
        positions.sort_unstable();
        for (expected, found) in (1..).zip(positions.iter().copied()) {
            if expected != found {
                let partition = *partition;
                faults.push(Fault::Position {
                    partition,
                    expected,
                    found,
                });
                break;
            }
        }
    }
    for (partition, head) in &log.heads {
        let newest = newest
            .remove(partition)
            .and_then(|all| all.last().copied())
            .unwrap_or(0);
        if newest != *head {
            faults.push(Fault::Head {
                partition: *partition,
                head: *head,
                newest,
            });
        }
    }
    for (partition, positions) in newest {
        let newest = positions.last().copied().unwrap_or(0);
        faults.push(Fault::Head {
            partition,
            head: 0,
            newest,
        });
    }
}

fn check_versions(log: &Log, faults: &mut Vec<Fault>) {
    for (key, rows) in by_aggregate(log) {
        for (expected, row) in (1..).zip(rows) {
            if row.version != expected {
                let (key, found) = (key.clone(), row.version);
                faults.push(Fault::Version {
                    key,
                    expected,
                    found,
                });
                break;
            }
        }
    }
}

fn check_once(log: &Log, faults: &mut Vec<Fault>) {
    let (mut requests, mut commands) = (HashSet::new(), HashSet::new());
    for row in &log.rows {
        if !requests.insert((&row.key.tenant, &row.key.aggregate_type, &row.request_id)) {
            let request = row.request_id.clone();
            faults.push(Fault::RequestTwice { request });
        }
        if !commands.insert(&row.command_id) {
            let command = row.command_id.clone();
            faults.push(Fault::CommandTwice { command });
        }
    }
}

fn check_money(log: &Log, faults: &mut Vec<Fault>) {
    let mut ledger = Ledger::default();
    for (key, rows) in by_aggregate(log) {
        for row in rows {
            if let Err(how) = ledger.apply(row) {
                let key = key.clone();
                faults.push(Fault::State { key, how });
                break;
            }
        }
    }
    for (key, account) in &ledger.accounts {
        if account.locked != 0 {
            let how = format!("{account:?} at rest");
            faults.push(Fault::State {
                key: key.clone(),
                how,
            });
        }
    }
    let (created, held) = (ledger.created, ledger.money());
    if created != held {
        faults.push(Fault::Money { created, held });
    }
}
