use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::model::Evolve;
use wow_kernel::{Aggregate, Event};

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    Opened,
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
enum Account {
    #[default]
    Open,
    Closed,
}

impl Evolve for Account {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

fn main() {}
