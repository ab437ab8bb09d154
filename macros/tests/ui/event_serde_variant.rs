use serde::{Deserialize, Serialize};
use wow_kernel::Event;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    #[serde(rename = "open")]
    Opened { name: String },
    #[serde(rename_all = "camelCase")]
    Closed { by_whom: String },
    #[serde(skip)]
    Hidden,
    #[serde(alias = "gone")]
    Left,
}

fn main() {}
