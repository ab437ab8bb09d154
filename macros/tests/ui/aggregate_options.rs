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
struct NoCommands {}

impl Evolve for NoCommands {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands())]
struct EmptyCommands {}

impl Evolve for EmptyCommands {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands = "Open")]
struct CommandsAsText {}

impl Evolve for CommandsAsText {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(owner = "sometimes", commands(Open))]
struct Owner {}

impl Evolve for Owner {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(tenant = "", commands(Open))]
struct Tenant {}

impl Evolve for Tenant {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(read, commands(Open))]
struct Readers {}

impl Evolve for Readers {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(read(owner, public), commands(Open))]
struct TwoReaders {}

impl Evolve for TwoReaders {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(command(Open))]
struct Unknown {}

impl Evolve for Unknown {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Open))]
struct NumberId {
    #[aggregate(id)]
    id: u64,
}

impl Evolve for NumberId {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Open))]
struct TwoIds {
    #[aggregate(id)]
    id: String,
    #[aggregate(id)]
    number: String,
}

impl Evolve for TwoIds {
    type Event = AccountEvent;

    fn evolve(&mut self, _event: &AccountEvent) {}
}

fn main() {}
