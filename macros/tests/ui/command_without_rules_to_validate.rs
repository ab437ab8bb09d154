use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(validate)]
struct Open {
    name: String,
}

fn main() {}
