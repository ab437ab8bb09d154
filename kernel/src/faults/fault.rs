//! How a call may fail, and how a seed draws it.

use std::time::Duration;

use super::Call;
use crate::memory::mix;
use crate::ports::{AppendError, StorageError};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It passes.
    None,
    /// It does nothing and says that storage is unavailable.
    Refuse,
    /// It does nothing and says that the log writer is busy; a call that can't be busy is refused.
    Busy,
    /// It does its work, and the answer is lost: an append says that its outcome is unknown. Any
    /// other call says that storage is unavailable, as a broken connection looks to its caller.
    LoseAnswer,
    /// It does nothing, and its caller can't know: the same answer as [`Fault::LoseAnswer`].
    LoseCall,
    /// It waits on the clock before it does its work.
    Delay(Duration),
    /// It does its work, and waits on the clock before it answers.
    DelayAnswer(Duration),
}

/// How often calls fail at random: shares of all calls, each from 0 to 1, together at most 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// The share of [`Fault::Refuse`].
    pub refuse: f64,
    /// The share of [`Fault::Busy`].
    pub busy: f64,
    /// The share of [`Fault::LoseAnswer`].
    pub lose_answer: f64,
    /// The share of [`Fault::LoseCall`].
    pub lose_call: f64,
    /// The share of [`Fault::Delay`].
    pub delay: f64,
    /// The share of [`Fault::DelayAnswer`].
    pub delay_answer: f64,
    /// The longest delay; how long each is, is drawn too.
    pub delay_max: Duration,
}

impl Rates {
    /// Nothing fails.
    pub const NONE: Self = Self {
        refuse: 0.0,
        busy: 0.0,
        lose_answer: 0.0,
        lose_call: 0.0,
        delay: 0.0,
        delay_answer: 0.0,
        delay_max: Duration::from_secs(1),
    };
}

impl Default for Rates {
    fn default() -> Self {
        Self::NONE
    }
}

/// Draws the faults of one kind of call.
pub(super) struct Draw {
    seed: u64,
    rates: Rates,
}

impl Draw {
    pub(super) fn new(seed: u64, call: Call, rates: Rates) -> Self {
        // Mixed with the kind, so that two kinds with one seed don't fail in step.
        Self {
            seed: mix(seed ^ mix(call as u64 + 1)),
            rates,
        }
    }

    /// The fault of the nth call.
    pub(super) fn fault(&self, number: u64) -> Fault {
        let bits = mix(self.seed.wrapping_add(number));
        let delay = self.rates.delay_max.mul_f64(share(mix(bits)));
        let mut left = share(bits);
        for (rate, fault) in [
            (self.rates.refuse, Fault::Refuse),
            (self.rates.busy, Fault::Busy),
            (self.rates.lose_answer, Fault::LoseAnswer),
            (self.rates.lose_call, Fault::LoseCall),
            (self.rates.delay, Fault::Delay(delay)),
            (self.rates.delay_answer, Fault::DelayAnswer(delay)),
        ] {
            if left < rate {
                return fault;
            }
            left -= rate;
        }
        Fault::None
    }
}

/// 53 of the bits as a number from 0 to 1, without 1.
fn share(bits: u64) -> f64 {
    const RANGE: f64 = (1_u64 << 53) as f64;
    (bits >> 11) as f64 / RANGE
}

/// How the errors of a port say what a fault did.
pub(super) trait PortError {
    /// Nothing was done.
    fn unavailable() -> Self;
    /// It may have been done.
    fn unknown() -> Self;
    /// Too much is going on.
    fn busy() -> Self;
}

const REASON: &str = "a fault was injected";

impl PortError for AppendError {
    fn unavailable() -> Self {
        Self::Unavailable(REASON.to_owned())
    }

    fn unknown() -> Self {
        Self::OutcomeUnknown(REASON.to_owned())
    }

    fn busy() -> Self {
        Self::Busy
    }
}

impl PortError for StorageError {
    fn unavailable() -> Self {
        Self::Unavailable(REASON.to_owned())
    }

    fn unknown() -> Self {
        Self::unavailable()
    }

    fn busy() -> Self {
        Self::unavailable()
    }
}
