//! Money is conserved, whatever clients do and in whatever order the saga's steps come.
//!
//! A small bank runs random commands. Its saga handles the entries of one account in order and
//! those of different accounts in any order, as a node does, and a crash makes it handle an entry
//! again: what has committed isn't run a second time, what was refused may not be refused now.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;
use wow::prelude::*;
use wow::testkit::{Then, given, given_saga};

use super::super::TransferSaga;
use super::super::commands::*;
use super::super::state::{Account, AccountEvent};

const ACCOUNTS: usize = 3;

/// One thing that happens. Accounts are named by their index; the one after the last isn't there.
#[derive(Debug, Clone)]
enum Step {
    Prepare {
        from: usize,
        to: usize,
        amount: i64,
    },
    Enter {
        to: usize,
        source: usize,
        amount: i64,
    },
    Lock {
        at: usize,
        amount: i64,
    },
    Unlock {
        at: usize,
        amount: i64,
    },
    /// A client gives up what is locked, as if it had arrived somewhere.
    Confirm {
        at: usize,
        amount: i64,
    },
    Freeze {
        at: usize,
    },
    Unfreeze {
        at: usize,
    },
    Delete {
        at: usize,
    },
    Recover {
        at: usize,
    },
    /// The saga handles the oldest entry of an account that it hasn't handled yet.
    Handle {
        at: usize,
    },
    /// The node dies before the checkpoint has passed the newest entry that was handled.
    Crash {
        at: usize,
    },
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 1..100_i64, 1 => 1..i64::MAX]
}

fn balance() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 0..1_000_i64, 1 => 0..=i64::MAX]
}

/// Transfers, and what can stop them.
fn transfers() -> impl Strategy<Value = Step> {
    let at = || 0..ACCOUNTS;
    prop_oneof![
        4 => (at(), 0..=ACCOUNTS, amount())
            .prop_map(|(from, to, amount)| Step::Prepare { from, to, amount }),
        1 => at().prop_map(|at| Step::Freeze { at }),
        1 => at().prop_map(|at| Step::Unfreeze { at }),
        1 => at().prop_map(|at| Step::Delete { at }),
        1 => at().prop_map(|at| Step::Recover { at }),
        6 => at().prop_map(|at| Step::Handle { at }),
    ]
}

/// Also what no client should do, and crashes.
fn anything() -> impl Strategy<Value = Step> {
    let at = || 0..ACCOUNTS;
    prop_oneof![
        14 => transfers(),
        1 => (at(), at(), 1..100_i64)
            .prop_map(|(to, source, amount)| Step::Enter { to, source, amount }),
        1 => (at(), amount()).prop_map(|(at, amount)| Step::Lock { at, amount }),
        1 => (at(), amount()).prop_map(|(at, amount)| Step::Unlock { at, amount }),
        1 => (at(), amount()).prop_map(|(at, amount)| Step::Confirm { at, amount }),
        2 => at().prop_map(|at| Step::Crash { at }),
    ]
}

/// An entry of the log, and how far the saga has come with it.
struct Pending {
    event: AccountEvent,
    is_sent: bool,
    is_answered: bool,
}

/// An account as the bank holds it.
struct Held {
    /// What came of its last command; it knows all that happened before.
    last: Option<Then<Account>>,
    /// What the saga has not handled yet.
    waiting: VecDeque<Pending>,
    /// What it has handled last.
    handled: Option<Pending>,
}

struct Bank {
    accounts: Vec<Held>,
    /// What clients have given up: it is the only money that goes.
    given_up: i128,
}

fn id(index: usize) -> String {
    format!("account-{index}")
}

impl Bank {
    fn open(balances: &[i64]) -> Self {
        let open = |(index, balance): (usize, &i64)| Held {
            last: Some(given(id(index)).when(create(*balance)).then()),
            waiting: VecDeque::new(),
            handled: None,
        };
        Self {
            accounts: balances.iter().enumerate().map(open).collect(),
            given_up: 0,
        }
    }

    fn run(&mut self, step: Step) {
        let reason = "a test".to_owned();
        let outcome = match step {
            Step::Prepare { from, to, amount } => self.send(from, Prepare { to: id(to), amount }),
            Step::Enter { to, source, amount } => self.send(to, enter(source, amount)),
            Step::Lock { at, amount } => self.send(at, LockAmount { amount }),
            Step::Unlock { at, amount } => self.send(at, UnlockAmount { amount }),
            Step::Confirm { at, amount } => {
                let given_up = self.send(at, Confirm { amount });
                if given_up.is_ok() {
                    self.given_up += i128::from(amount);
                }
                given_up
            }
            Step::Freeze { at } => self.send(at, FreezeAccount { reason }),
            Step::Unfreeze { at } => self.send(at, UnfreezeAccount { reason }),
            Step::Delete { at } => self.send_json(at, "delete_aggregate"),
            Step::Recover { at } => self.send_json(at, "recover_aggregate"),
            Step::Handle { at } => {
                self.handle(at);
                Ok(())
            }
            Step::Crash { at } => {
                self.forget(at);
                Ok(())
            }
        };
        // A client may be refused; what matters is the sum.
        drop(outcome);
    }

    fn send<C: Command>(&mut self, at: usize, command: C) -> Result<(), CommandError>
    where
        Account: Decide<C>,
    {
        self.run_at(at, |last| last.when(command).then())
    }

    fn send_as_saga<C: Command>(&mut self, at: usize, command: C) -> Result<(), CommandError>
    where
        Account: Decide<C>,
    {
        let saga = Principal::service(TransferSaga::NAME);
        self.run_at(at, |last| last.when(command).principal(saga).then())
    }

    fn send_json(&mut self, at: usize, command: &str) -> Result<(), CommandError> {
        self.run_at(at, |last| last.when_json(command, "{}").then())
    }

    fn run_at(
        &mut self,
        at: usize,
        run: impl FnOnce(Then<Account>) -> Then<Account>,
    ) -> Result<(), CommandError> {
        let held = self.accounts.get_mut(at).ok_or(CommandError::NotFound)?;
        let then = run(held.last.take().unwrap());
        let outcome = then.refusal().cloned().map_or(Ok(()), Err);
        let pending = |event| Pending {
            event,
            is_sent: false,
            is_answered: false,
        };
        held.waiting
            .extend(then.committed().into_iter().map(pending));
        held.last = Some(then);
        outcome
    }

    /// The saga handles the oldest entry of an account; `false` where there is none, or where it
    /// has to wait, and all later ones with it.
    fn handle(&mut self, at: usize) -> bool {
        let Some(mut entry) = self.accounts[at].waiting.pop_front() else {
            return false;
        };
        let is_done = self.handle_entry(at, &mut entry);
        let held = &mut self.accounts[at];
        match is_done {
            true => held.handled = Some(entry),
            false => held.waiting.push_front(entry),
        }
        is_done
    }

    fn handle_entry(&mut self, at: usize, entry: &mut Pending) -> bool {
        let sent = given_saga(TransferSaga)
            .id(id(at))
            .when(entry.event.clone());
        let Some(command) = sent.commands().unwrap().first().filter(|_| !entry.is_sent) else {
            return true;
        };
        let Err(refusal) = self.dispatch(command) else {
            entry.is_sent = true;
            return true;
        };
        let answer = sent.rejected(0, refusal);
        let Some(commands) = answer.commands() else {
            return false;
        };
        if !entry.is_answered {
            // What the domain refuses is told to an operator, and the saga goes on.
            entry.is_answered = commands.iter().all(|command| {
                matches!(
                    self.dispatch(command),
                    Ok(()) | Err(CommandError::Rejected(_))
                )
            });
        }
        entry.is_answered
    }

    fn dispatch(&mut self, command: &SagaCommand) -> Result<(), CommandError> {
        let target = command.target().unwrap();
        let at = (0..ACCOUNTS).find(|index| id(*index) == target);
        let at = at.unwrap_or(ACCOUNTS);
        if let Some(command) = command.payload::<Entry>() {
            self.send_as_saga(at, command.clone())
        } else if let Some(command) = command.payload::<Confirm>() {
            self.send_as_saga(at, command.clone())
        } else {
            let command = command.payload::<UnlockAmount>().unwrap();
            self.send_as_saga(at, command.clone())
        }
    }

    fn forget(&mut self, at: usize) {
        let held = &mut self.accounts[at];
        if let Some(entry) = held.handled.take() {
            held.waiting.push_front(entry);
        }
    }

    /// An operator recovers what was deleted, and the saga comes to its end.
    fn rest(&mut self) {
        for at in 0..ACCOUNTS {
            self.send_json(at, "recover_aggregate").unwrap();
        }
        while (0..ACCOUNTS).any(|at| self.handle(at)) {}
        let is_at_rest = self.accounts.iter().all(|held| held.waiting.is_empty());
        assert!(is_at_rest, "an entry waits for ever");
    }

    /// The sums of balance and of locked over all accounts.
    fn sums(&mut self) -> (i128, i128) {
        let (mut balance, mut locked) = (0, 0);
        for held in &mut self.accounts {
            let then = held.last.take().unwrap().state(|account| {
                assert!(account.balance_amount >= 0, "overdrawn: {account:?}");
                balance += i128::from(account.balance_amount);
                locked += i128::from(account.locked_amount);
            });
            held.last = Some(then);
        }
        (balance, locked)
    }
}

fn create(balance: i64) -> CreateAccount {
    CreateAccount {
        name: "someone".to_owned(),
        balance,
    }
}

fn enter(source: usize, amount: i64) -> Entry {
    Entry {
        source_id: id(source),
        amount,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn money_is_conserved(
        balances in vec(balance(), ACCOUNTS),
        steps in vec(anything(), 0..40),
    ) {
        let mut bank = Bank::open(&balances);
        let (created, _) = bank.sums();
        steps.into_iter().for_each(|step| bank.run(step));
        bank.rest();
        let (balance, locked) = bank.sums();
        prop_assert_eq!(balance + locked, created - bank.given_up);
    }

    #[test]
    fn at_rest_no_transfer_holds_money_back(
        balances in vec(balance(), ACCOUNTS),
        steps in vec(transfers(), 0..40),
    ) {
        let mut bank = Bank::open(&balances);
        let (created, _) = bank.sums();
        steps.into_iter().for_each(|step| bank.run(step));
        bank.rest();
        prop_assert_eq!(bank.sums(), (created, 0));
    }
}
