use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(create)]
struct Open {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure, pure)]
struct Close {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(name = "close account")]
struct CloseAccount {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(id = "account")]
struct Freeze {
    account: String,
}

fn main() {}
