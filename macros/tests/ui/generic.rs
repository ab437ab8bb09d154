use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
struct Wrap<T> {
    inner: T,
}

fn main() {}
