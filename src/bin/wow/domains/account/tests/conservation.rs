//! Money is conserved, whatever clients do and in whatever order the saga's steps come.
//!
//! A small bank runs random commands. Its saga handles the entries of one account in order,
//! those of different accounts in any order, as a node does.

use std::collections::VecDeque;

use proptest::prelude::*;
use wow::prelude::*;
use wow::testkit::{Then, given, given_saga};

use super::super::TransferSaga;
use super::super::commands::*;
use super::super::state::{Account, AccountEvent};

const ACCOUNTS: usize = 3;

/// One thing that happens; accounts are named by their index, and one more that doesn't exist.
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
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 1..100_i64, 1 => 1..i64::MAX]
}

fn step() -> impl Strategy<Value = Step> {
    let (at, other) = (|| 0..ACCOUNTS, || 0..=ACCOUNTS);
    prop_oneof![
        4 => (at(), other(), amount())
            .prop_map(|(from, to, amount)| Step::Prepare { from, to, amount }),
        1 => (at(), at(), 1..100_i64)
            .prop_map(|(to, source, amount)| Step::Enter { to, source, amount }),
        1 => (at(), amount()).prop_map(|(at, amount)| Step::Lock { at, amount }),
        1 => (at(), amount()).prop_map(|(at, amount)| Step::Unlock { at, amount }),
        1 => at().prop_map(|at| Step::Freeze { at }),
        1 => at().prop_map(|at| Step::Unfreeze { at }),
        1 => at().prop_map(|at| Step::Delete { at }),
        1 => at().prop_map(|at| Step::Recover { at }),
        6 => at().prop_map(|at| Step::Handle { at }),
    ]
}

/// An account as the bank holds it: what came of its last command, and what the saga has not
/// handled yet.
struct Held {
    last: Option<Then<Account>>,
    entries: VecDeque<AccountEvent>,
}

struct Bank {
    accounts: Vec<Held>,
}

fn id(index: usize) -> String {
    format!("account-{index}")
}

impl Bank {
    fn open(balances: &[i64]) -> Self {
        let held = |(index, balance): (usize, &i64)| {
            let command = CreateAccount {
                name: "someone".into(),
                balance: *balance,
            };
            let last = given::<Account>(id(index)).when(command).then();
            Held {
                last: Some(last),
                entries: VecDeque::new(),
            }
        };
        Self {
            accounts: balances.iter().enumerate().map(held).collect(),
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Prepare { from, to, amount } => {
                self.send(from, Prepare { to: id(to), amount });
            }
            Step::Enter { to, source, amount } => {
                self.send(
                    to,
                    Entry {
                        source_id: id(source),
                        amount,
                    },
                );
            }
            Step::Lock { at, amount } => drop(self.send(at, LockAmount { amount })),
            Step::Unlock { at, amount } => drop(self.send(at, UnlockAmount { amount })),
            Step::Freeze { at } => drop(self.send(
                at,
                FreezeAccount {
                    reason: "test".into(),
                },
            )),
            Step::Unfreeze { at } => {
                self.send(
                    at,
                    UnfreezeAccount {
                        reason: "test".into(),
                    },
                );
            }
            Step::Delete { at } => self.send_json(at, "delete_aggregate"),
            Step::Recover { at } => self.send_json(at, "recover_aggregate"),
            Step::Handle { at } => drop(self.handle(at)),
        }
    }

    /// Sends a command; answers with what refused it.
    fn send<C: Command>(&mut self, at: usize, command: C) -> Option<CommandError>
    where
        Account: Decide<C>,
    {
        let Some(held) = self.accounts.get_mut(at) else {
            return Some(CommandError::NotFound);
        };
        let then = held.last.take().unwrap().when(command).then();
        let refusal = then.refusal().cloned();
        held.entries.extend(then.committed());
        held.last = Some(then);
        refusal
    }

    fn send_json(&mut self, at: usize, command: &str) {
        let held = &mut self.accounts[at];
        held.last = Some(held.last.take().unwrap().when_json(command, "{}").then());
    }

    /// Handles the oldest entry of an account; `false` where there is none, or it has to wait.
    fn handle(&mut self, at: usize) -> bool {
        let Some(event) = self.accounts[at].entries.front().cloned() else {
            return false;
        };
        let sent = given_saga(TransferSaga).id(id(at)).when(event);
        let Some(command) = sent.commands().unwrap().first().cloned() else {
            self.accounts[at].entries.pop_front();
            return true;
        };
        if let Some(refusal) = self.dispatch(&command) {
            let answer = sent.rejected(0, refusal);
            let Some(commands) = answer.commands() else {
                // The entry is parked, and those after it wait behind it.
                return false;
            };
            for command in commands {
                self.dispatch(command);
            }
        }
        self.accounts[at].entries.pop_front();
        true
    }

    fn dispatch(&mut self, command: &SagaCommand) -> Option<CommandError> {
        let target = command.target().unwrap();
        let at = (0..ACCOUNTS)
            .find(|index| id(*index) == target)
            .unwrap_or(ACCOUNTS);
        if let Some(command) = command.payload::<Entry>() {
            self.send(at, command.clone())
        } else if let Some(command) = command.payload::<Confirm>() {
            self.send(at, command.clone())
        } else {
            let command = command.payload::<UnlockAmount>().unwrap();
            self.send(at, command.clone())
        }
    }

    /// An operator recovers what was deleted, and the saga comes to its end.
    fn rest(&mut self) {
        for at in 0..ACCOUNTS {
            self.send_json(at, "recover_aggregate");
        }
        while (0..ACCOUNTS).any(|at| self.handle(at)) {}
        for (index, held) in self.accounts.iter().enumerate() {
            assert!(
                held.entries.is_empty(),
                "{} waits for ever: {:?}",
                id(index),
                held.entries
            );
        }
    }

    fn sum(&mut self) -> i128 {
        let mut sum = 0;
        for held in &mut self.accounts {
            let then = held.last.take().unwrap().state(|account| {
                assert!(account.balance_amount >= 0, "overdrawn: {account:?}");
                sum += i128::from(account.balance_amount) + i128::from(account.locked_amount);
            });
            held.last = Some(then);
        }
        sum
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn money_is_conserved(
        balances in proptest::collection::vec(prop_oneof![3 => 0..1_000_i64, 1 => 0..=i64::MAX], ACCOUNTS),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut bank = Bank::open(&balances);
        let created = bank.sum();
        for step in steps {
            bank.run(step);
        }
        bank.rest();
        prop_assert_eq!(bank.sum(), created);
    }
}
