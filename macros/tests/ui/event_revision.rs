use serde::{Deserialize, Serialize};
use serde_json::Value;
use wow_kernel::Event;

fn lift(_revision: u32, body: Value) -> Result<Value, String> {
    Ok(body)
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    #[event(revision = 2)]
    Opened { name: String },
    #[event(upcast = lift)]
    Closed { reason: String },
    #[event(revision = 0)]
    Frozen,
    #[event(revision = "2", upcast = lift)]
    Thawed,
}

fn main() {}
