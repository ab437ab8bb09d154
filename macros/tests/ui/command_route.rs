use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(method = "GET")]
struct Look {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(action = "/a//b")]
struct Slashes {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(action = "items/{item}")]
struct Unfilled {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(action = "items")]
struct Unnamed {
    #[command(path = "item")]
    item: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(action = "items/{id}")]
struct Reserved {
    #[command(path = "id")]
    id: String,
}

fn main() {}
