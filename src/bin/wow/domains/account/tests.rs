//! Every command of an account, what it is refused for, and that no money is lost between two.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conservation;

use wow::prelude::*;
use wow::testkit::{Given, given, given_saga};

use super::TransferSaga;
use super::commands::*;
use super::state::{Account, AccountEvent};

fn created(balance: i64) -> AccountEvent {
    AccountEvent::AccountCreated {
        name: "Ann".into(),
        balance,
    }
}

fn frozen() -> AccountEvent {
    AccountEvent::AccountFrozen {
        reason: "lost card".into(),
    }
}

/// What brings transfers to their end.
fn saga() -> Principal {
    Principal::service(TransferSaga::NAME)
}

fn account(balance: i64) -> Given<Account> {
    given("ann").events([created(balance)])
}

fn prepare(to: &str, amount: i64) -> Prepare {
    Prepare {
        to: to.into(),
        amount,
    }
}

fn entry(amount: i64) -> Entry {
    Entry {
        source_id: "bob".into(),
        amount,
    }
}

fn entered(amount: i64) -> AccountEvent {
    AccountEvent::AmountEntered {
        source_id: "bob".into(),
        amount,
    }
}

#[test]
fn an_account_is_created_with_a_balance() {
    given::<Account>("ann")
        .when_json("create_account", r#"{"name": "Ann", "balance": 100}"#)
        .then()
        .events([created(100)])
        .state(|account| {
            let json = serde_json::to_value(account).unwrap();
            let expected = serde_json::json!({
                "id": "ann", "name": "Ann", "balanceAmount": 100, "lockedAmount": 0, "frozen": false
            });
            assert_eq!(json, expected);
        });
}

#[test]
fn an_account_needs_a_name_and_no_debt() {
    let nameless = CreateAccount {
        name: "  ".into(),
        balance: -1,
    };
    let then = given::<Account>("ann").when(nameless).then();
    then.rejects("wow.command.invalid")
        .faults(["name", "balance"]);
    let too_large = r#"{"name": "Ann", "balance": 9223372036854775808}"#;
    let then = given::<Account>("ann")
        .when_json("create_account", too_large)
        .then();
    then.rejects("wow.command.body-invalid").faults(["balance"]);
}

#[test]
fn r10_an_account_is_created_once() {
    let again = CreateAccount {
        name: "Ann".into(),
        balance: 1,
    };
    account(1)
        .when(again)
        .then()
        .rejects("wow.aggregate.exists");
}

#[test]
fn preparing_a_transfer_locks_its_amount() {
    account(100)
        .when(prepare("bob", 30))
        .then()
        .events([
            AccountEvent::AmountLocked { amount: 30 },
            AccountEvent::Prepared {
                to: "bob".into(),
                amount: 30,
            },
        ])
        .state(|account| assert_eq!((account.balance_amount, account.locked_amount), (70, 30)));
}

#[test]
fn a_transfer_is_refused_where_it_can_not_be_done() {
    account(100)
        .when(prepare("bob", 101))
        .then()
        .rejects("account.insufficient-balance");
    account(100)
        .when(prepare("ann", 1))
        .then()
        .rejects("account.same-account");
    let icy = given::<Account>("ann").events([created(100), frozen()]);
    icy.when(prepare("bob", 1)).then().rejects("account.frozen");
    let nothing = account(100).when(prepare("", 0)).then();
    nothing
        .rejects("wow.command.invalid")
        .faults(["to", "amount"]);
    given::<Account>("ann")
        .when(prepare("bob", 1))
        .then()
        .rejects("wow.aggregate.not-found");
}

#[test]
fn an_entry_adds_to_the_balance() {
    account(1)
        .when_json("entry", r#"{"sourceId": "bob", "amount": 9}"#)
        .then()
        .events([entered(9)])
        .state(|account| assert_eq!(account.balance_amount, 10));
}

#[test]
fn a_frozen_account_answers_an_entry_with_an_event() {
    given::<Account>("ann")
        .events([created(1), frozen()])
        .when(entry(9))
        .then()
        .events([AccountEvent::EntryFailed {
            source_id: "bob".into(),
            amount: 9,
        }])
        .state(|account| assert_eq!(account.balance_amount, 1));
}

#[test]
fn an_amount_that_overflows_is_refused_and_never_wrapped() {
    account(i64::MAX)
        .when(entry(1))
        .then()
        .rejects("account.amount-overflow");
    account(i64::MAX)
        .events([AccountEvent::AmountLocked { amount: i64::MAX }])
        .when(entry(1))
        .then()
        .rejects("account.amount-overflow");
    account(0)
        .events([AccountEvent::Confirmed { amount: i64::MAX }])
        .when(Confirm { amount: 2 })
        .principal(saga())
        .then()
        .rejects("account.amount-overflow");
}

#[test]
fn a_confirmed_amount_leaves_the_account() {
    account(100)
        .events([AccountEvent::AmountLocked { amount: 30 }])
        .when(Confirm { amount: 30 })
        .then()
        .events([AccountEvent::Confirmed { amount: 30 }])
        .state(|account| assert_eq!((account.balance_amount, account.locked_amount), (70, 0)));
}

#[test]
fn what_has_arrived_is_confirmed_even_where_less_is_locked() {
    account(100)
        .when(Confirm { amount: 30 })
        .principal(saga())
        .then()
        .events([AccountEvent::Confirmed { amount: 30 }])
        .state(|account| assert_eq!(account.locked_amount, -30));
}

#[test]
fn a_client_confirms_no_more_than_is_locked() {
    account(100)
        .events([AccountEvent::AmountLocked { amount: 30 }])
        .when(Confirm { amount: 31 })
        .then()
        .rejects("account.insufficient-locked")
        .when(Confirm { amount: 30 })
        .then()
        .events([AccountEvent::Confirmed { amount: 30 }]);
}

#[test]
fn an_amount_is_locked_and_unlocked() {
    account(100)
        .when(LockAmount { amount: 100 })
        .then()
        .events([AccountEvent::AmountLocked { amount: 100 }])
        .state(|account| assert_eq!((account.balance_amount, account.locked_amount), (0, 100)))
        .when(UnlockAmount { amount: 99 })
        .then()
        .events([AccountEvent::AmountUnlocked { amount: 99 }])
        .state(|account| assert_eq!((account.balance_amount, account.locked_amount), (99, 1)));
}

#[test]
fn no_more_is_locked_or_unlocked_than_there_is() {
    let then = account(100).when(LockAmount { amount: 101 }).then();
    then.rejects("account.insufficient-balance");
    let then = account(100).when(UnlockAmount { amount: 1 }).then();
    then.rejects("account.insufficient-locked");
}

#[test]
fn an_amount_is_more_than_nothing() {
    account(1)
        .when(entry(0))
        .then()
        .rejects("wow.command.invalid")
        .faults(["amount"]);
    account(1)
        .when(Confirm { amount: -1 })
        .then()
        .rejects("wow.command.invalid");
    account(1)
        .when(LockAmount { amount: -1 })
        .then()
        .rejects("wow.command.invalid");
    account(1)
        .when(UnlockAmount { amount: -1 })
        .then()
        .rejects("wow.command.invalid");
}

#[test]
fn an_account_is_frozen_once_and_unfrozen_once() {
    account(1)
        .when(FreezeAccount {
            reason: "lost card".into(),
        })
        .then()
        .events([frozen()])
        .state(|account| assert!(account.frozen))
        .when(FreezeAccount {
            reason: "again".into(),
        })
        .then()
        .rejects("account.frozen")
        .when(UnfreezeAccount {
            reason: "found it".into(),
        })
        .then()
        .events([AccountEvent::AccountUnfrozen {
            reason: "found it".into(),
        }])
        .state(|account| assert!(!account.frozen))
        .when(UnfreezeAccount {
            reason: "again".into(),
        })
        .then()
        .rejects("account.not-frozen");
}

#[test]
fn a_prepared_transfer_enters_its_target() {
    given_saga(TransferSaga)
        .id("ann")
        .when(AccountEvent::Prepared {
            to: "bob".into(),
            amount: 30,
        })
        .sends([SagaCommand::to(
            "bob",
            Entry {
                source_id: "ann".into(),
                amount: 30,
            },
        )]);
}

#[test]
fn what_has_entered_is_confirmed_at_its_source() {
    given_saga(TransferSaga)
        .when(entered(30))
        .sends([SagaCommand::to("bob", Confirm { amount: 30 })]);
}

#[test]
fn what_could_not_enter_is_unlocked_at_its_source() {
    given_saga(TransferSaga)
        .when(AccountEvent::EntryFailed {
            source_id: "bob".into(),
            amount: 30,
        })
        .sends([SagaCommand::to("bob", UnlockAmount { amount: 30 })]);
}

#[test]
fn the_saga_has_nothing_to_do_with_other_events() {
    let saga = || given_saga(TransferSaga);
    saga().when(created(1)).sends_nothing();
    saga().when(frozen()).sends_nothing();
    saga()
        .when(AccountEvent::AccountUnfrozen {
            reason: String::new(),
        })
        .sends_nothing();
    saga()
        .when(AccountEvent::AmountLocked { amount: 1 })
        .sends_nothing();
    saga()
        .when(AccountEvent::AmountUnlocked { amount: 1 })
        .sends_nothing();
    saga()
        .when(AccountEvent::Confirmed { amount: 1 })
        .sends_nothing();
}

#[test]
fn a_target_that_refuses_for_good_gives_the_amount_back() {
    for refusal in [
        CommandError::NotFound,
        CommandError::Deleted,
        Rejection::new("account.amount-overflow", "full").into(),
    ] {
        given_saga(TransferSaga)
            .id("ann")
            .when(AccountEvent::Prepared {
                to: "bob".into(),
                amount: 30,
            })
            .rejected(0, refusal)
            .sends([SagaCommand::to("ann", UnlockAmount { amount: 30 })]);
    }
}

#[test]
fn a_source_that_never_was_has_nothing_locked() {
    given_saga(TransferSaga)
        .when(entered(30))
        .rejected(0, CommandError::NotFound)
        .sends_nothing();
    given_saga(TransferSaga)
        .when(AccountEvent::EntryFailed {
            source_id: "bob".into(),
            amount: 30,
        })
        .rejected(0, Rejection::new(INSUFFICIENT_LOCKED, "less locked"))
        .sends_nothing();
}

#[test]
fn a_source_that_was_deleted_waits_for_an_operator() {
    given_saga(TransferSaga)
        .when(entered(30))
        .rejected(0, CommandError::Deleted)
        .unanswered();
}
