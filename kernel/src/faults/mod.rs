//! Storage that fails on purpose, so that a test decides how, when and how often.
//!
//! [`Faults`] wraps any implementation of the storage ports. What is wrapped behaves as before
//! until it is told otherwise:
//!
//! ```
//! # use std::sync::Arc;
//! use wow_kernel::faults::{Call, Fault, Faults};
//! use wow_kernel::memory::{ManualClock, MemoryStore};
//!
//! let clock = Arc::new(ManualClock::new());
//! let faults = Faults::new(clock.clone());
//! let store = faults.wrap(Arc::new(MemoryStore::new(clock)));
//!
//! // The next append is written, and its caller never learns of it (R54).
//! faults.script(Call::Append, [Fault::LoseAnswer]);
//! # drop(store);
//! ```
//!
//! - a script says what becomes of the next calls, one by one;
//! - [`Faults::always`] is a storage that is down until it is healed;
//! - [`Faults::at_random`] draws from a seed, the same for each call's kind and number, so that a
//!   failing run can be repeated;
//! - a [`Gate`] holds one call before or after it did its work, until it is released;
//! - counters say how often each method was called: what costs no storage read is counted, not
//!   timed.

mod call;
mod fault;
mod gate;
mod ports;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use self::fault::Draw;
use crate::ports::Clock;

pub use self::call::Call;
pub use self::fault::{Fault, Rates};
pub use self::gate::{Gate, Moment};
pub use self::ports::Faulty;

/// Decides what becomes of the calls to the ports it wraps. Clones decide together.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    plans: Mutex<BTreeMap<Call, Plan>>,
}

/// What is planned for one kind of call.
#[derive(Default)]
struct Plan {
    calls: u64,
    script: VecDeque<Fault>,
    always: Option<Fault>,
    draw: Option<Draw>,
    gates: Vec<gate::Hold>,
}

/// What becomes of one call.
struct Fate {
    fault: Fault,
    before: Option<gate::Hold>,
    after: Option<gate::Hold>,
}

impl Plan {
    /// Counts a call and says what becomes of it: the script first, then what always happens,
    /// then what is drawn.
    fn next(&mut self) -> Fate {
        self.calls += 1;
        let fault = self
            .script
            .pop_front()
            .or(self.always)
            .or_else(|| self.draw.as_ref().map(|draw| draw.fault(self.calls)))
            .unwrap_or(Fault::None);
        self.gates.retain(|hold| !hold.is_abandoned());
        let mut gate_at = |moment| {
            let index = self.gates.iter().position(|hold| hold.moment() == moment)?;
            Some(self.gates.remove(index))
        };
        Fate {
            fault,
            before: gate_at(Moment::Before),
            after: gate_at(Moment::After),
        }
    }
}

impl Faults {
    /// No faults yet. Delays sleep on the clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                plans: Mutex::default(),
            }),
        }
    }

    /// Wraps an implementation of one or several ports, which then fails as planned here.
    pub fn wrap<S: ?Sized>(&self, inner: Arc<S>) -> Arc<Faulty<S>> {
        Arc::new(Faulty::new(inner, self.clone()))
    }

    /// Says what becomes of the next calls of a kind, after those already scripted.
    /// [`Fault::None`] lets one pass.
    pub fn script(&self, call: Call, faults: impl IntoIterator<Item = Fault>) {
        self.plan(call, |plan| plan.script.extend(faults));
    }

    /// Says what becomes of every call of these kinds that isn't scripted, until [`Faults::heal`].
    /// `always(&Call::ALL, Fault::Refuse)` is a storage that is down.
    pub fn always(&self, calls: &[Call], fault: Fault) {
        for &call in calls {
            self.plan(call, |plan| plan.always = Some(fault));
        }
    }

    /// Draws what becomes of calls of these kinds that aren't scripted, until [`Faults::heal`].
    /// The draw depends on the seed, the kind and how many of the kind came before, and on
    /// nothing else.
    pub fn at_random(&self, seed: u64, calls: &[Call], rates: &Rates) {
        for &call in calls {
            let draw = Draw::new(seed, call, rates.clone());
            self.plan(call, |plan| plan.draw = Some(draw));
        }
    }

    /// Ends every fault that is planned; what is already delayed or held stays so.
    pub fn heal(&self) {
        for plan in self.shared.plans.lock().values_mut() {
            plan.script.clear();
            plan.always = None;
            plan.draw = None;
        }
    }

    /// Holds the next call of a kind at a moment, until the gate is released or dropped.
    pub fn hold(&self, call: Call, moment: Moment) -> Gate {
        let (gate, hold) = gate::gate(moment);
        self.plan(call, |plan| plan.gates.push(hold));
        gate
    }

    /// How often a method was called, whatever became of it.
    pub fn calls(&self, call: Call) -> u64 {
        self.shared
            .plans
            .lock()
            .get(&call)
            .map_or(0, |plan| plan.calls)
    }

    /// How often anything was read from storage: what R42 bounds.
    pub fn reads(&self) -> u64 {
        let plans = self.shared.plans.lock();
        plans
            .iter()
            .filter(|(call, _)| call.is_read())
            .map(|(_, plan)| plan.calls)
            .sum()
    }

    fn plan<T>(&self, call: Call, change: impl FnOnce(&mut Plan) -> T) -> T {
        change(self.shared.plans.lock().entry(call).or_default())
    }

    fn next(&self, call: Call) -> Fate {
        self.plan(call, Plan::next)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans = self.shared.plans.lock();
        f.debug_map()
            .entries(plans.iter().map(|(call, plan)| (call, plan.calls)))
            .finish()
    }
}
