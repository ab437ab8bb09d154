//! Histories that are broken on purpose: the checker has to see each.

use serde_json::{Value, json};

use super::{Fault, check, unfinished};
use crate::kill::history::{Acknowledged, Answer, Ask, Attempt, History, Read, Request};
use crate::support::database::{Key, Log, LogRow};

fn key(aggregate_type: &str, id: &str) -> Key {
    Key {
        tenant: "(0)".to_owned(),
        aggregate_type: aggregate_type.to_owned(),
        id: id.to_owned(),
    }
}

/// The sound log: two accounts, a transfer of 10 between them, and a cart that got 2 and then 3
/// of a product. Id, version, request, command, events.
const ROWS: [(&str, i64, &str, &str, &str); 7] = [
    (
        "ann",
        1,
        "r-1",
        "create_account",
        r#"[["account_created", {"balance": 100}]]"#,
    ),
    (
        "bob",
        1,
        "r-2",
        "create_account",
        r#"[["account_created", {"balance": 0}]]"#,
    ),
    (
        "ann",
        2,
        "r-3",
        "prepare",
        r#"[["amount_locked", {"amount": 10}], ["prepared", {"to": "bob", "amount": 10}]]"#,
    ),
    (
        "bob",
        2,
        "wow:s:example:TransferSaga:1:3:0",
        "entry",
        r#"[["amount_entered", {"sourceId": "ann", "amount": 10}]]"#,
    ),
    (
        "ann",
        3,
        "wow:s:example:TransferSaga:1:4:0",
        "confirm",
        r#"[["confirmed", {"amount": 10}]]"#,
    ),
    (
        "kit",
        1,
        "r-4",
        "add_cart_item",
        r#"[["cart_item_added", {"added": {"productId": "p", "quantity": 2}}]]"#,
    ),
    (
        "kit",
        2,
        "r-5",
        "add_cart_item",
        r#"[["cart_quantity_changed", {"changed": {"productId": "p", "quantity": 5}}]]"#,
    ),
];

/// A commit in partition 1.
fn row(position: i64, of: (&str, i64, &str, &str, &str)) -> LogRow {
    let (id, version, request, command_type, events) = of;
    let events: Vec<(String, Value)> = serde_json::from_str(events).unwrap();
    let event = |(name, body)| json!({"name": name, "revision": 1, "body": body});
    let aggregate_type = match command_type {
        "add_cart_item" => "cart",
        _ => "account",
    };
    LogRow {
        partition: 1,
        position,
        key: key(aggregate_type, id),
        version,
        request_id: request.to_owned(),
        command_id: format!("c-{position}"),
        command_type: command_type.to_owned(),
        events: events.into_iter().map(event).collect(),
    }
}

fn sound_log() -> Log {
    let snapshots = [
        (key("account", "ann"), 3),
        (key("account", "bob"), 2),
        (key("cart", "kit"), 2),
    ];
    Log {
        rows: (1..)
            .zip(ROWS)
            .map(|(position, of)| row(position, of))
            .collect(),
        heads: [(0, 0), (1, 7)].into(),
        snapshots: snapshots.into(),
    }
}

/// An attempt that was told of the commit at a position.
fn told(log: &Log, position: usize, (sent, ended): (u64, u64), duplicate: bool) -> Attempt {
    let row = &log.rows[position - 1];
    let own = if duplicate {
        format!("d-{sent}")
    } else {
        row.command_id.clone()
    };
    Attempt {
        life: 1,
        sent,
        ended,
        answer: Answer::Committed(Acknowledged {
            key: row.key.clone(),
            version: row.version,
            command_id: row.command_id.clone(),
            own_command_id: own,
            duplicate,
            in_snapshot: true,
        }),
    }
}

fn attempt(life: u32, (sent, ended): (u64, u64), answer: Answer) -> Attempt {
    Attempt {
        life,
        sent,
        ended,
        answer,
    }
}

fn create(id: Option<&str>, balance: i64) -> Ask {
    let id = id.map(str::to_owned);
    Ask::Create { id, balance }
}

fn add(quantity: i64) -> Ask {
    let (owner, product) = ("kit".to_owned(), "p".to_owned());
    Ask::Add {
        owner,
        product,
        quantity,
    }
}

/// What clients saw of the sound log, beside a request that was refused and one whose answer
/// nobody got.
fn sound() -> (History, Log) {
    let log = sound_log();
    let full = Answer::Refused("cart.full".to_owned());
    let prepare = Ask::Prepare {
        from: "ann".to_owned(),
        to: "bob".to_owned(),
        amount: 10,
    };
    let retried = vec![
        attempt(1, (1, 2), Answer::Unknown),
        told(&log, 1, (3, 4), true),
        told(&log, 1, (30, 31), true),
    ];
    let turned_away = attempt(1, (13, 14), Answer::TurnedAway);
    let requests = [
        (create(None, 100), retried),
        (create(Some("bob"), 0), vec![told(&log, 2, (5, 6), false)]),
        (prepare, vec![told(&log, 3, (7, 8), false)]),
        (add(2), vec![told(&log, 6, (9, 10), false)]),
        (add(3), vec![told(&log, 7, (11, 12), false)]),
        (add(1), vec![turned_away, attempt(1, (15, 16), full)]),
        (add(1), vec![attempt(1, (17, 18), Answer::Unknown)]),
    ];
    let requests = (1..)
        .zip(requests)
        .map(|(number, (ask, attempts))| Request {
            id: format!("r-{number}"),
            ask,
            attempts,
        });
    let read = Read {
        key: key("cart", "kit"),
        sent: 20,
        version: 2,
    };
    let (requests, reads) = (requests.collect(), vec![read]);
    (History { requests, reads }, log)
}

/// The faults of a sound history after something was broken.
fn broken(breaking: impl FnOnce(&mut History, &mut Log)) -> Vec<Fault> {
    let (mut history, mut log) = sound();
    breaking(&mut history, &mut log);
    check(&history, &log)
}

/// Whether one of the faults is of the wanted kind.
macro_rules! assert_sees {
    ($faults:expr, $wanted:pat) => {
        let faults = $faults;
        assert!(
            faults.iter().any(|fault| matches!(fault, $wanted)),
            "{faults:#?}"
        );
    };
}

fn answer(history: &mut History, request: usize) -> &mut Acknowledged {
    let attempts = &mut history.requests[request - 1].attempts;
    match &mut attempts.last_mut().unwrap().answer {
        Answer::Committed(acknowledged) => acknowledged,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sound_history_has_no_fault() {
    assert_eq!(broken(|_, _| {}), []);
}

#[test]
fn an_answer_that_nobody_got_may_have_committed() {
    let faults = broken(|_, log| {
        let late = r#"[["cart_quantity_changed", {"changed": {"productId": "p", "quantity": 6}}]]"#;
        log.rows
            .push(row(8, ("kit", 3, "r-7", "add_cart_item", late)));
        log.heads.insert(1, 8);
    });
    assert_eq!(faults, []);
}

#[test]
fn a_lost_commit_is_seen() {
    assert_sees!(
        broken(|_, log| {
            log.rows.remove(6);
        }),
        Fault::Lost { .. }
    );
    assert_sees!(
        broken(|_, log| {
            log.rows.remove(6);
        }),
        Fault::Head { .. }
    );
    assert_sees!(
        broken(|_, log| {
            log.rows.remove(5);
        }),
        Fault::Version { .. }
    );
    assert_sees!(
        broken(|_, log| {
            log.rows.remove(5);
        }),
        Fault::Position { .. }
    );
    assert_sees!(
        broken(|_, log| {
            log.heads.insert(1, 8);
        }),
        Fault::Head { .. }
    );
    assert_sees!(
        broken(|_, log| {
            log.heads.remove(&1);
        }),
        Fault::Head { .. }
    );
}

#[test]
fn a_doubled_commit_is_seen() {
    let twice = |log: &mut Log| {
        let mut again = log.rows[6].clone();
        (again.position, again.version, again.command_id) = (8, 3, "c-8".to_owned());
        log.rows.push(again);
        log.heads.insert(1, 8);
    };
    assert_sees!(broken(|_, log| twice(log)), Fault::RequestTwice { .. });
    let same_command = |log: &mut Log| {
        twice(log);
        log.rows[7].request_id = "r-7".to_owned();
        log.rows[7].command_id = "c-7".to_owned();
    };
    assert_sees!(
        broken(|_, log| same_command(log)),
        Fault::CommandTwice { .. }
    );
    // The effect of one request twice, in one commit of its own.
    let effect = |log: &mut Log| log.rows[6].events[0]["body"]["changed"]["quantity"] = json!(8);
    assert_sees!(broken(|_, log| effect(log)), Fault::Altered { .. });
    let forgotten = |log: &mut Log| log.rows[6].events[0]["body"]["changed"]["quantity"] = json!(3);
    assert_sees!(broken(|_, log| forgotten(log)), Fault::Altered { .. });
}

#[test]
fn a_commit_that_nobody_asked_for_is_seen() {
    let unasked = broken(|history, _| {
        history.requests.remove(4);
    });
    assert_sees!(unasked, Fault::Unasked { .. });
    let other_target = broken(|history, _| {
        history.requests[1].ask = create(Some("cid"), 0);
    });
    assert_sees!(other_target, Fault::Altered { .. });
    let other_amount = broken(|history, _| {
        history.requests[1].ask = create(None, 1);
    });
    assert_sees!(other_amount, Fault::Altered { .. });
}

#[test]
fn answers_that_contradict_are_seen() {
    let version = broken(|history, _| answer(history, 1).version = 2);
    assert_sees!(version, Fault::AnswersDiffer { .. });
    let first_twice = broken(|history, _| {
        let attempt = history.requests[1].attempts[0].clone();
        history.requests[1].attempts.push(attempt);
    });
    assert_sees!(first_twice, Fault::FirstTwice { .. });
    let not_its_own = broken(|history, _| answer(history, 2).own_command_id = "x".to_owned());
    assert_sees!(not_its_own, Fault::Altered { .. });
    let not_in_the_log = broken(|history, _| {
        let answer = answer(history, 2);
        answer.command_id = "x".to_owned();
        answer.own_command_id = "x".to_owned();
    });
    assert_sees!(not_in_the_log, Fault::Altered { .. });
}

#[test]
fn a_refusal_of_what_was_committed_is_seen() {
    let refused = |life: u32| {
        broken(|history, _| {
            let refusal = Answer::Refused("cart.full".to_owned());
            history.requests[4].attempts = vec![
                attempt(1, (11, 12), Answer::Unknown),
                attempt(life, (13, 14), refusal),
            ];
        })
    };
    assert_sees!(refused(2), Fault::RefusedCommitted { .. });
    // On the same node, the first attempt may have committed after the second was refused.
    assert_eq!(refused(1), []);
    let by_the_system = broken(|history, _| {
        let refusal = Answer::Refused("wow.aggregate.exists".to_owned());
        history.requests[5].attempts[1].answer = refusal;
    });
    assert_sees!(by_the_system, Fault::Refused { .. });
}

#[test]
fn a_later_command_with_an_earlier_version_is_seen() {
    let faults = broken(|history, _| {
        let attempt = &mut history.requests[3].attempts[0];
        (attempt.sent, attempt.ended) = (40, 41);
    });
    assert_sees!(faults, Fault::OutOfOrder { version: 1, .. });
    // Side by side, either may be first.
    let faults = broken(|history, _| {
        let attempt = &mut history.requests[3].attempts[0];
        (attempt.sent, attempt.ended) = (11, 41);
        history.requests[4].attempts[0].sent = 10;
    });
    assert_eq!(faults, []);
}

#[test]
fn a_stale_read_is_seen() {
    let stale = broken(|history, _| history.reads[0].version = 1);
    assert_sees!(
        stale,
        Fault::Read {
            version: 1,
            at_least: 2,
            ..
        }
    );
    let ahead = broken(|history, _| history.reads[0].version = 3);
    assert_sees!(ahead, Fault::Read { version: 3, .. });
    let before_the_answer = broken(|history, _| {
        history.reads[0].sent = 11;
        history.reads[0].version = 1;
    });
    assert_eq!(before_the_answer, []);
    let behind = broken(|_, log| {
        log.snapshots.insert(key("cart", "kit"), 1);
    });
    assert_sees!(behind, Fault::Snapshot { version: 1, .. });
    let ahead = broken(|_, log| {
        log.snapshots.insert(key("cart", "kit"), 3);
    });
    assert_sees!(ahead, Fault::Snapshot { version: 3, .. });
}

#[test]
fn a_transfer_that_was_cut_short_or_done_twice_is_seen() {
    let cut_short = |log: &mut Log| {
        log.rows.retain(|row| row.command_type != "confirm");
    };
    assert_sees!(broken(|_, log| cut_short(log)), Fault::SagaMissing { .. });
    let (_, mut log) = sound();
    assert_eq!(unfinished(&log), 0);
    cut_short(&mut log);
    assert_eq!(unfinished(&log), 1);

    let twice = broken(|_, log| {
        let mut again = log.rows[3].clone();
        again.request_id.push('x');
        (again.position, again.version, again.command_id) = (8, 3, "c-8".to_owned());
        log.rows.push(again);
        log.heads.insert(1, 8);
    });
    assert_sees!(&twice, Fault::Unasked { .. });
    assert_sees!(
        &twice,
        Fault::Money {
            created: 100,
            held: 110
        }
    );
    let elsewhere = broken(|_, log| log.rows[3].events[0]["body"]["amount"] = json!(11));
    assert_sees!(elsewhere, Fault::Altered { .. });
}

#[test]
fn a_state_that_nothing_allows_is_seen() {
    let overdrawn = broken(|_, log| log.rows[0].events[0]["body"]["balance"] = json!(5));
    assert_sees!(overdrawn, Fault::State { .. });
    let locked = broken(|_, log| {
        log.rows.remove(4);
    });
    assert_sees!(locked, Fault::State { .. });
}
