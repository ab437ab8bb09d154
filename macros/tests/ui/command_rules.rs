use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::Command;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates, upserts)]
struct Open {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(owner, roles("clerk"))]
struct Close {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(roles)]
struct Ship {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(roles())]
struct Pack {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(policy = "weekday")]
struct Rest {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates, recovers)]
struct Restore {}

fn main() {}
