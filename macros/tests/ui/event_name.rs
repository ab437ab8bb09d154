use serde::{Deserialize, Serialize};
use wow_kernel::Event;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum AccountEvent {
    Opened {
        name: String,
    },
    #[event(alias = "opened")]
    OpenedAgain,
    #[event(name = "")]
    Closed,
    #[event(name)]
    Frozen,
    #[event(name = "thaw", name = "thawed")]
    Thawed,
    #[event(nam = "left")]
    Left,
}

fn main() {}
