//! A service of your own, whole: state, events, a command, the process, and a test.
//!
//! `cargo run --example counter` serves it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

/// What is known of a counter. It is stored as a snapshot, and clients read it as JSON.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Increment))]
struct Counter {
    value: u32,
}

/// What can happen to it, and is kept for ever.
#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum CounterEvent {
    Incremented { by: u32 },
}

/// What can be asked of it: `PUT /counter/{id}/increment` with `{"by": 1}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
struct Increment {
    by: u32,
}

impl Evolve for Counter {
    type Event = CounterEvent;
    fn evolve(&mut self, event: &CounterEvent) {
        let CounterEvent::Incremented { by } = event;
        self.value += by;
    }
}

impl Decide<Increment> for Counter {
    async fn decide(
        &self,
        command: &Increment,
        _context: &DecideContext,
    ) -> Result<Decision<CounterEvent>, Rejection> {
        let by = command.by;
        let full = || Rejection::new("counter.full", "the counter is at its end");
        self.value.checked_add(by).ok_or_else(full)?;
        Ok(Decision::event(CounterEvent::Incremented { by }))
    }
}

/// The node, as the shipped one: `./config.toml`, `WOW__…` and `--set key=value`, until SIGTERM.
fn main() -> std::process::ExitCode {
    wow::node::run(|node| node.register::<Counter>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wow::testkit::given;

    #[test]
    fn a_counter_counts() {
        given::<Counter>("visits")
            .events([CounterEvent::Incremented { by: 2 }])
            .when(Increment { by: 3 })
            .then()
            .events([CounterEvent::Incremented { by: 3 }])
            .state(|counter| assert_eq!(counter.value, 5));
    }

    #[test]
    fn a_full_counter_refuses() {
        given::<Counter>("visits")
            .events([CounterEvent::Incremented { by: u32::MAX }])
            .when(Increment { by: 1 })
            .then()
            .rejects("counter.full");
    }
}
