use serde::{Deserialize, Serialize};
use wow_kernel::Event;

fn lift(body: String) -> String {
    body
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    #[event(revision = 2, upcast = lift)]
    Opened { name: String },
}

fn main() {}
