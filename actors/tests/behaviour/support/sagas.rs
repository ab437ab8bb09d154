//! Sagas, and the aggregate that they follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::model::{
    Decide, DecideContext, Decision, Evolve, RejectedCommand, Rejection, Saga, SagaCommand,
    SagaEntry,
};
use wow_kernel::{Aggregate, Command, Event};

use super::nasty::{Hold, Note, Reject};

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(tenant = "(0)", commands(Start))]
pub struct Pump {
    pub started: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub enum PumpEvent {
    Started { steps: Vec<Step> },
}

impl Evolve for Pump {
    type Event = PumpEvent;

    fn evolve(&mut self, _event: &PumpEvent) {
        self.started += 1;
    }
}

/// One command that the saga sends for an event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub enum Step {
    /// Notes a number at a target.
    Note { to: String, n: u64 },
    /// Is held at a gate, then notes.
    Hold { to: String, gate: String, n: u64 },
    /// Is refused, unless the target's code is empty; the saga answers with a note, if it has
    /// one.
    Reject { to: String, answer: Option<u64> },
}

/// Commits one event with these steps.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub struct Start {
    pub steps: Vec<Step>,
}

impl Decide<Start> for Pump {
    async fn decide(
        &self,
        command: &Start,
        _context: &DecideContext,
    ) -> Result<Decision<PumpEvent>, Rejection> {
        let steps = command.steps.clone();
        Ok(Decision::event(PumpEvent::Started { steps }))
    }
}

/// What a test tells the saga, and learns of it.
#[derive(Debug, Default)]
pub struct Controls {
    /// The saga panics while this is set.
    pub panics: AtomicBool,
    /// How often it has handled an event.
    pub handled: AtomicU64,
}

/// Sends what the events say.
#[derive(Debug)]
pub struct Mover(pub Arc<Controls>);

impl Saga for Mover {
    type Aggregate = Pump;

    const NAME: &'static str = "mover";

    fn handle(&self, event: &PumpEvent, _entry: &SagaEntry<'_, Pump>) -> Vec<SagaCommand> {
        self.0.handled.fetch_add(1, Ordering::SeqCst);
        assert!(!self.0.panics.load(Ordering::SeqCst), "the saga panics");
        let PumpEvent::Started { steps } = event;
        steps.iter().map(command).collect()
    }

    fn on_rejected(
        &self,
        event: &PumpEvent,
        _entry: &SagaEntry<'_, Pump>,
        rejected: &RejectedCommand<'_>,
    ) -> Option<Vec<SagaCommand>> {
        let PumpEvent::Started { steps } = event;
        let Step::Reject {
            to,
            answer: Some(n),
        } = &steps[rejected.index]
        else {
            return None;
        };
        Some(vec![SagaCommand::to(to, Note { n: *n })])
    }
}

fn command(step: &Step) -> SagaCommand {
    match step.clone() {
        Step::Note { to, n } => SagaCommand::to(to, Note { n }),
        Step::Hold { to, gate, n } => SagaCommand::to(to, Hold { gate, n }),
        Step::Reject { to, .. } => {
            let code = "nasty.no".to_owned();
            SagaCommand::to(to, Reject { code })
        }
    }
}

/// Follows the same type and sends nothing.
#[derive(Debug)]
pub struct Watcher;

impl Saga for Watcher {
    type Aggregate = Pump;

    const NAME: &'static str = "watcher";

    fn handle(&self, _event: &PumpEvent, _entry: &SagaEntry<'_, Pump>) -> Vec<SagaCommand> {
        Vec::new()
    }
}
