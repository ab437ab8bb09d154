use serde::{Deserialize, Serialize};
use wow_kernel::Event;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum NoEvent {}

fn main() {}
