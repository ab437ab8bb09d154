use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::model::{Decide, DecideContext, Decision, Evolve, Rejection};
use wow_kernel::{Aggregate, Command, Event};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    Opened,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Open {}

fn hook(_state: &Account) -> Vec<AccountEvent> {
    Vec::new()
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Open), after(hook))]
struct Account {}

impl Evolve for Account {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

impl Decide<Open> for Account {
    async fn decide(
        &self,
        _command: &Open,
        _context: &DecideContext,
    ) -> Result<Decision<AccountEvent>, Rejection> {
        Ok(Decision::event(AccountEvent::Opened))
    }
}

fn main() {}
