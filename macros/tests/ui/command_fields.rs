use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Number {
    #[command(id)]
    account: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Two {
    #[command(id)]
    source: String,
    #[command(id)]
    target: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Hidden {
    #[command(id)]
    #[serde(skip)]
    account: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Both {
    #[command(path = "channel", header = "Channel")]
    channel: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Twice {
    #[command(header = "Channel")]
    first: String,
    #[command(header = "channel")]
    second: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct NoHeader {
    #[command(header = "My Channel")]
    channel: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Unknown {
    #[command(query = "channel")]
    channel: String,
}

fn main() {}
