//! What clients were told, against the log: each answer is a promise.

use std::collections::{BTreeMap, HashMap};

use super::{Fault, log::by_aggregate};
use crate::kill::history::{Acknowledged, Answer, Ask, Attempt, History, Moment, Request};
use crate::kill::ledger::{Ledger, events, number, text};
use crate::support::database::{Key, Log, LogRow};

/// What the request ids of sagas begin with.
const SYSTEM: &str = "wow:";

pub(super) fn check(history: &History, log: &Log) -> Vec<Fault> {
    let mut faults = Vec::new();
    let rows: HashMap<_, _> = log
        .rows
        .iter()
        .map(|row| {
            (
                (row.key.aggregate_type.as_str(), row.request_id.as_str()),
                row,
            )
        })
        .collect();
    for request in &history.requests {
        let row = rows.get(&(request.ask.aggregate_type(), request.id.as_str()));
        check_answers(request, &mut faults);
        check_outcome(request, row.copied(), &mut faults);
    }
    check_asked(history, log, &mut faults);
    check_effects(history, log, &mut faults);
    check_order(history, &mut faults);
    check_reads(history, log, &mut faults);
    check_snapshots(history, log, &mut faults);
    faults
}

fn acknowledged(request: &Request) -> impl Iterator<Item = (&Attempt, &Acknowledged)> {
    request
        .attempts
        .iter()
        .filter_map(|attempt| match &attempt.answer {
            Answer::Committed(acknowledged) => Some((attempt, acknowledged)),
            _ => None,
        })
}

/// All answers of one request are alike, and one attempt at most is the first.
fn check_answers(request: &Request, faults: &mut Vec<Fault>) {
    let id = || request.id.clone();
    let what = |answer: &Acknowledged| {
        (
            answer.key.clone(),
            answer.version,
            answer.command_id.clone(),
        )
    };
    let mut answers = acknowledged(request).map(|(_, answer)| answer);
    if let Some(first) = answers.next()
        && answers.any(|other| what(other) != what(first))
    {
        faults.push(Fault::AnswersDiffer { request: id() });
    }
    let firsts = acknowledged(request).filter(|(_, answer)| !answer.duplicate);
    if firsts.count() > 1 {
        faults.push(Fault::FirstTwice { request: id() });
    }
    for (_, answer) in acknowledged(request) {
        // The first commit is the attempt's own; a duplicate's is another's.
        if answer.duplicate == (answer.command_id == answer.own_command_id) {
            let how = format!("duplicate: {}", answer.duplicate);
            faults.push(Fault::Altered { request: id(), how });
        }
    }
    for attempt in &request.attempts {
        if let Answer::Refused(code) = &attempt.answer
            && code.starts_with("wow.")
        {
            let (request, code) = (id(), code.clone());
            faults.push(Fault::Refused { request, code });
        }
    }
}

/// What was acknowledged is in the log as it was told; what was refused isn't.
fn check_outcome(request: &Request, row: Option<&LogRow>, faults: &mut Vec<Fault>) {
    let id = || request.id.clone();
    if let Some((_, answer)) = acknowledged(request).next() {
        match row {
            None => faults.push(Fault::Lost { request: id() }),
            Some(row) => {
                let told = (&answer.key, answer.version, &answer.command_id);
                if told != (&row.key, row.version, &row.command_id) {
                    let how = format!("{told:?} was told, {row:?} is there");
                    faults.push(Fault::Altered { request: id(), how });
                }
            }
        }
    } else if row.is_some() && is_refused_for_good(request) {
        faults.push(Fault::RefusedCommitted { request: id() });
    }
}

/// Whether the request was refused when no earlier attempt could commit any more: each was
/// answered, or died with its node.
fn is_refused_for_good(request: &Request) -> bool {
    let refused = |attempt: &&Attempt| matches!(attempt.answer, Answer::Refused(_));
    request
        .attempts
        .iter()
        .find(refused)
        .is_some_and(|refused| {
            let open = |attempt: &&Attempt| matches!(attempt.answer, Answer::Unknown);
            let mut open = request.attempts.iter().filter(open);
            open.all(|attempt| attempt.life < refused.life)
        })
}

/// Every commit was asked for: by a client, with this command for this aggregate, or by a saga.
fn check_asked(history: &History, log: &Log, faults: &mut Vec<Fault>) {
    let asked: HashMap<_, _> = history
        .requests
        .iter()
        .map(|request| {
            (
                (request.ask.aggregate_type(), request.id.as_str()),
                &request.ask,
            )
        })
        .collect();
    for row in log
        .rows
        .iter()
        .filter(|row| !row.request_id.starts_with(SYSTEM))
    {
        let request = row.request_id.clone();
        match asked.get(&(row.key.aggregate_type.as_str(), row.request_id.as_str())) {
            None => faults.push(Fault::Unasked { request }),
            Some(ask) => {
                let named = ask.target().unwrap_or(&row.key.id);
                if named != row.key.id || ask.command_type() != row.command_type {
                    let how = format!("{ask:?} was asked, {row:?} is there");
                    faults.push(Fault::Altered { request, how });
                }
            }
        }
    }
}

/// Each commit did what was asked, once.
fn check_effects(history: &History, log: &Log, faults: &mut Vec<Fault>) {
    let asks: HashMap<_, _> = history
        .requests
        .iter()
        .map(|request| {
            (
                (request.ask.aggregate_type(), request.id.as_str()),
                &request.ask,
            )
        })
        .collect();
    for rows in by_aggregate(log).into_values() {
        let mut ledger = Ledger::default();
        for row in rows {
            let ask = asks.get(&(row.key.aggregate_type.as_str(), row.request_id.as_str()));
            if let Some(ask) = ask
                && !does(row, ask, &ledger)
            {
                let (request, how) = (row.request_id.clone(), row.events.to_string());
                faults.push(Fault::Altered { request, how });
            }
            // What can't be applied is told elsewhere.
            let _ = ledger.apply(row);
        }
    }
}

/// Whether a row's events are what was asked, given what was before.
fn does(row: &LogRow, ask: &Ask, before: &Ledger) -> bool {
    let events: Vec<_> = events(row).collect();
    match (ask, &events[..]) {
        (Ask::Create { balance, .. }, [("account_created", created)]) => {
            number(created, "balance") == *balance
        }
        (Ask::Prepare { to, amount, .. }, [("amount_locked", locked), ("prepared", prepared)]) => {
            number(locked, "amount") == *amount
                && number(prepared, "amount") == *amount
                && text(prepared, "to") == to
        }
        (
            Ask::Add {
                product, quantity, ..
            },
            [(name, body)],
        ) => {
            let item = match *name {
                "cart_item_added" => &body["added"],
                _ => &body["changed"],
            };
            text(item, "productId") == product
                && number(item, "quantity") == before.quantity(&row.key, product) + quantity
        }
        _ => false,
    }
}

/// A command that was sent after another of its aggregate was answered has a later version.
fn check_order(history: &History, faults: &mut Vec<Fault>) {
    // Of each request: from when it can have committed, when it was known to have, its version.
    let mut spans = HashMap::<&Key, Vec<(Moment, Moment, i64)>>::new();
    for request in &history.requests {
        if let Some((attempt, answer)) = acknowledged(request).next() {
            let sent = request.attempts[0].sent;
            let span = (sent, attempt.ended, answer.version);
            spans.entry(&answer.key).or_default().push(span);
        }
    }
    for (key, spans) in spans {
        let mut by_end = spans.clone();
        by_end.sort_unstable_by_key(|(_, ended, _)| *ended);
        let mut by_start = spans;
        by_start.sort_unstable();
        let (mut ended_before, mut newest) = (by_end.into_iter().peekable(), 0);
        for (sent, _, version) in by_start {
            while let Some((.., known)) = ended_before.next_if(|(_, ended, _)| *ended < sent) {
                newest = newest.max(known);
            }
            if version <= newest {
                let key = key.clone();
                faults.push(Fault::OutOfOrder { key, version });
            }
        }
    }
}

/// The newest version of each aggregate.
fn newest_versions(log: &Log) -> BTreeMap<&Key, i64> {
    let mut newest = BTreeMap::new();
    for row in &log.rows {
        let known = newest.entry(&row.key).or_insert(0);
        *known = row.version.max(*known);
    }
    newest
}

/// A read after SNAPSHOT shows that version or a later one, and none that never was.
fn check_reads(history: &History, log: &Log, faults: &mut Vec<Fault>) {
    let newest = newest_versions(log);
    let mut promised = HashMap::<&Key, Vec<(Moment, i64)>>::new();
    for request in &history.requests {
        for (attempt, answer) in acknowledged(request).filter(|(_, answer)| answer.in_snapshot) {
            let promise = (attempt.ended, answer.version);
            promised.entry(&answer.key).or_default().push(promise);
        }
    }
    for read in &history.reads {
        let promised = promised.get(&read.key).into_iter().flatten();
        let before = promised.filter(|(ended, _)| *ended < read.sent);
        let at_least = before.map(|(_, version)| *version).max().unwrap_or(0);
        let at_most = newest.get(&read.key).copied().unwrap_or(0);
        if !(at_least..=at_most).contains(&read.version) {
            let (key, version) = (read.key.clone(), read.version);
            faults.push(Fault::Read {
                key,
                version,
                at_least,
                at_most,
            });
        }
    }
}

/// A stored snapshot holds what was promised of it, and nothing that never was.
fn check_snapshots(history: &History, log: &Log, faults: &mut Vec<Fault>) {
    let newest = newest_versions(log);
    let mut promised = HashMap::<&Key, i64>::new();
    for (_, answer) in history.requests.iter().flat_map(acknowledged) {
        if answer.in_snapshot {
            let version = promised.entry(&answer.key).or_insert(0);
            *version = answer.version.max(*version);
        }
    }
    for (key, at_most) in newest {
        let at_least = promised.remove(key).unwrap_or(0);
        let version = log.snapshots.get(key).copied().unwrap_or(0);
        if !(at_least..=at_most).contains(&version) {
            let key = key.clone();
            faults.push(Fault::Snapshot {
                key,
                version,
                at_least,
                at_most,
            });
        }
    }
}
