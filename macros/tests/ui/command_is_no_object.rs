use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Rename(String);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
enum Move {
    Up,
    Down,
}

fn main() {}
