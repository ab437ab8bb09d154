use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::model::Evolve;
use wow_kernel::{Aggregate, Command, Event};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    Opened,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Open {}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Open))]
struct Account {}

impl Evolve for Account {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

fn main() {}
