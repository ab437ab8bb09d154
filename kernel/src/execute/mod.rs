//! The command loop: state → duplicate → guards → decide → hooks → evolve → append (R40 to R58).
//!
//! [`Kernel::execute`] runs one command of one aggregate to its end. Its caller, a lane, makes
//! sure that an aggregate's commands run one at a time on this node (R30); the log's unique keys
//! make sure that nothing goes wrong where another node runs them too.

mod append;
mod attempt;
mod duplicate;
mod guards;
mod load;
#[cfg(test)]
mod tests;
mod turn;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use guards::{check_existence, check_scope};
pub use load::{LoadError, Loaded, Loader};

use attempt::Run;

use crate::access::AccessMode;
use crate::command::BuiltCommand;
use crate::commit::StateView;
use crate::error::CommandError;
use crate::id::{AggregateKey, Version};
use crate::model::Services;
use crate::ports::{
    Clock, CommandSender, CommitLog, History, Isolation, KernelObserver, Random, RequestLookup,
};
use crate::recent::RequestRecord;

/// The bounds of the command loop.
#[derive(Debug, Clone)]
pub struct KernelLimits {
    /// How long deciding may take (R35).
    pub decide_timeout: Duration,
    /// How often a conflict is decided again (R52).
    pub conflict_retries: u32,
    /// How long an unknown outcome is looked into (R54).
    pub append_timeout: Duration,
    /// The largest entry, in bytes.
    pub entry_bytes_max: usize,
    /// How many partitions the log has.
    pub partitions: u32,
}

impl Default for KernelLimits {
    fn default() -> Self {
        Self {
            decide_timeout: Duration::from_secs(30),
            conflict_retries: 10,
            append_timeout: Duration::from_secs(60),
            entry_bytes_max: 1024 * 1024,
            partitions: 64,
        }
    }
}

/// Runs commands against the latest state of their aggregates.
pub struct Kernel {
    /// Loads cold aggregates.
    pub loader: Loader,
    /// The log.
    pub log: Arc<dyn CommitLog>,
    /// Second looks.
    pub history: Arc<dyn History>,
    /// Finds what a request committed.
    pub requests: Arc<dyn RequestLookup>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Jitter.
    pub random: Arc<dyn Random>,
    /// Where blocking command functions run.
    pub isolation: Arc<dyn Isolation>,
    /// Who counts.
    pub observer: Arc<dyn KernelObserver>,
    /// What users provide to their command functions.
    pub services: Arc<Services>,
    /// How callers are known.
    pub mode: AccessMode,
    /// Bounds.
    pub limits: KernelLimits,
    /// How command functions send; set once the node runs.
    pub sender: OnceLock<Arc<dyn CommandSender>>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What a lane keeps between commands: the aggregate, where it is known for certain.
#[derive(Debug, Default)]
pub struct LaneState {
    /// The newest state; none where storage has to be asked. Boxed, for every command takes it
    /// out and puts the next one in.
    pub cached: Option<Box<Loaded>>,
}

/// What became of a command.
#[derive(Debug)]
pub enum Executed {
    /// It committed.
    Committed(StateView),
    /// Its request had committed before: that commit's result is the answer (R40).
    Known {
        /// What the request committed.
        record: Box<RequestRecord>,
        /// To which aggregate.
        key: AggregateKey,
        /// Whether another command committed it; `false` where it was this very one (R54).
        duplicate: bool,
    },
    /// It decided no events (R45).
    Unchanged {
        /// The version of the aggregate.
        version: Version,
        /// The result map.
        result: Option<Arc<serde_json::value::RawValue>>,
    },
    /// It failed; nothing was committed, as far as the error says.
    Failed(CommandError),
}

/// How one try ended.
enum Try {
    /// With an answer.
    Answer(Executed),
    /// Another commit was faster: load and decide again (R52).
    Again,
}

impl From<Executed> for Try {
    fn from(answer: Executed) -> Self {
        Self::Answer(answer)
    }
}

impl From<CommandError> for Try {
    fn from(error: CommandError) -> Self {
        Self::Answer(Executed::Failed(error))
    }
}

impl Kernel {
    /// Runs one command to its end. After it the lane's state holds what is known for certain,
    /// or nothing.
    pub async fn execute(&self, lane: &mut LaneState, command: &Arc<BuiltCommand>) -> Executed {
        let mut run = Run {
            kernel: self,
            lane,
            command,
            append_tried: false,
        };
        let mut conflicts = 0;
        loop {
            match run.attempt().await {
                Try::Answer(executed) => return executed,
                Try::Again => {
                    run.lane.cached = None;
                    self.observer.append_conflict();
                    conflicts += 1;
                    if conflicts > self.limits.conflict_retries {
                        // A last look at the request before giving up (R43).
                        return Box::pin(run.confirm_request(false, CommandError::Conflict)).await;
                    }
                    self.clock.sleep(self.backoff(conflicts)).await;
                }
            }
        }
    }

    /// A jittered pause before trying again: up to 2 ms · 2ⁿ, at most 200 ms.
    fn backoff(&self, tries: u32) -> Duration {
        let bound = (2_u64 << tries.min(7)).min(200) * 1000;
        Duration::from_micros(self.random.bits() % bound)
    }
}

/// How much an attempt knows of what storage holds.
#[derive(Clone, Copy)]
struct Knowledge {
    /// The state was loaded for this very command (R58).
    fresh: bool,
    /// The request is known not to have committed (R42).
    request_new: bool,
}
