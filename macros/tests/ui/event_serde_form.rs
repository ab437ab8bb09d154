use serde::{Deserialize, Serialize};
use wow_kernel::Event;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(tag = "type", content = "body")]
enum Tagged {
    Opened { name: String },
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(untagged)]
enum Untagged {
    Opened { name: String },
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
#[serde(rename_all = "camelCase")]
enum Renamed {
    Opened { name: String },
}

fn main() {}
