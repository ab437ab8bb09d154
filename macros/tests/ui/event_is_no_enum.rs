use serde::{Deserialize, Serialize};
use wow_kernel::Event;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
struct Opened {
    name: String,
}

fn main() {}
