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
    /// The newest state; none where storage has to be asked.
    pub cached: Option<Loaded>,
}

/// What became of a command.
#[derive(Debug)]
pub enum Executed {
    /// It committed.
    Committed(StateView),
    /// Its request had committed before: that commit's result is the answer (R40).
    Known {
        /// What the request committed.
        record: RequestRecord,
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
                        return run.confirm_request(false, CommandError::Conflict).await;
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
<<<<<<< HEAD
=======

impl Run<'_> {
    async fn attempt(&mut self) -> Try {
        let (loaded, fresh) = match self.take_state().await {
            Ok(taken) => taken,
            Err(error) => return self.load_failed(&error),
        };
        let mut known = Knowledge {
            fresh,
            request_new: self.is_request_certain(),
        };
        if !known.request_new {
            if let Some(record) = loaded.recent.find(&self.command.request_id) {
                self.lane.cached = Some(loaded);
                return self.answer_known(record, self.command.key().clone());
            }
            if self.command.definition.spec.purity == Purity::Impure {
                match self.find_request().await {
                    Ok(None) => known.request_new = true,
                    Ok(Some(answer)) => {
                        self.lane.cached = Some(loaded);
                        return answer;
                    }
                    Err(error) => return self.storage_failed(Some(loaded), &error),
                }
            }
        }
        if let Err(refusal) = self.guard(&loaded) {
            return self.confirm(loaded, known, Executed::Failed(refusal)).await;
        }
        if self.command.definition.spec.recovers && !loaded.facts.deleted {
            let unchanged = Executed::Unchanged {
                version: loaded.version,
                result: None,
            };
            return self.confirm(loaded, known, unchanged).await;
        }
        self.decide(loaded, known).await
    }

    /// The state to decide on, and whether it was loaded just now.
    async fn take_state(&mut self) -> Result<(Loaded, bool), LoadError> {
        if let Some(cached) = self.lane.cached.take() {
            return Ok((cached, false));
        }
        let (kernel, command) = (self.kernel, self.command);
        if command.aggregate_id_made && !self.append_tried {
            // An id that admission has just made can't have a history (R12).
            let capacity = kernel.loader.recent_requests;
            let initial = Loaded::before_first(&command.aggregate, command.key(), capacity)?;
            return Ok((initial, true));
        }
        Ok((
            kernel
                .loader
                .load(&command.aggregate, command.key())
                .await?,
            true,
        ))
    }

    fn load_failed(&self, error: &LoadError) -> Try {
        tracing::error!(key = %self.command.key(), %error, "aggregate can't be loaded");
        CommandError::from(error).into()
    }

    fn storage_failed(&mut self, keep: Option<Loaded>, error: &StorageError) -> Try {
        tracing::warn!(key = %self.command.key(), %error, "storage failed before the append");
        self.lane.cached = keep;
        CommandError::StorageUnavailable.into()
    }

    /// R8's mark: a request id that admission made can't have committed, until an append was tried.
    fn is_request_certain(&self) -> bool {
        self.command.request_id_made && !self.append_tried
    }

    fn guard(&self, loaded: &Loaded) -> Result<(), CommandError> {
        let command = self.command;
        let exists = loaded.version > 0;
        if exists {
            check_scope(
                self.kernel.mode,
                command.aggregate.spec.owner,
                &command.principal,
                &command.identity,
                &loaded.facts,
            )?;
        }
        check_existence(&command.definition.spec, exists, loaded.facts.deleted)?;
        match command.expected_version {
            Some(expected) if expected != loaded.version => Err(CommandError::VersionMismatch {
                expected,
                current: loaded.version,
            }),
            _ => Ok(()),
        }
    }

    async fn decide(&mut self, loaded: Loaded, known: Knowledge) -> Try {
        let (turn, slow) = self.run_function(&loaded).await;
        if let Some(took) = slow {
            let (of, name) = (
                &self.command.aggregate.aggregate_type,
                &self.command.definition.name,
            );
            tracing::warn!(aggregate_type = %of, command_type = %name, ?took, "slow turn");
            self.kernel.observer.slow_turn(of.as_str(), name, took);
        }
        let decided = match turn {
            Turn::Done(Ok(decided)) => decided,
            Turn::Done(Err(DecideFault::Rejected(rejection))) => {
                return self
                    .confirm(loaded, known, Executed::Failed(rejection.into()))
                    .await;
            }
            Turn::Done(Err(DecideFault::Unwritable(reason))) => {
                tracing::error!(command = ?self.command, reason, "the decision can't be written");
                return self
                    .confirm(loaded, known, Executed::Failed(CommandError::Internal))
                    .await;
            }
            Turn::Panicked => {
                tracing::error!(command = ?self.command, "the command function panicked");
                drop(loaded);
                return self.confirm_request(known, CommandError::Panicked).await;
            }
            Turn::TimedOut => {
                tracing::warn!(command = ?self.command, "deciding took too long");
                drop(loaded);
                return self
                    .confirm_request(known, CommandError::DecideTimeout)
                    .await;
            }
        };
        if decided.events.is_empty() {
            let unchanged = Executed::Unchanged {
                version: loaded.version,
                result: decided.result,
            };
            return self.confirm(loaded, known, unchanged).await;
        }
        self.commit(loaded, known, decided).await
    }

    async fn run_function(&self, loaded: &Loaded) -> (Turn, Option<Duration>) {
        let (kernel, command) = (self.kernel, self.command);
        let context = DecideContext {
            command: Arc::clone(command),
            version: loaded.version,
            now: kernel.clock.now(),
            services: Arc::clone(&kernel.services),
            sender: kernel.sender.get().cloned(),
        };
        let (state, payload) = (Arc::clone(&loaded.state), Arc::clone(&command.payload));
        let mut decide = command.definition.decide(state, payload, context);
        if command.definition.spec.blocking {
            decide = kernel.isolation.run(decide);
        }
        turn::run(decide, &*kernel.clock, kernel.limits.decide_timeout).await
    }

    /// An answer other than a commit is given only once it is known that the request hasn't
    /// committed (R43), and that a cached state was still the newest (R58).
    async fn confirm(&mut self, loaded: Loaded, known: Knowledge, answer: Executed) -> Try {
        let certain = self.is_request_certain();
        let ask_request = !certain && (!known.request_new || !known.fresh);
        if known.fresh {
            self.lane.cached = Some(loaded);
            return match ask_request {
                false => Try::Answer(answer),
                true => match self.find_request().await {
                    Ok(found) => found.unwrap_or(Try::Answer(answer)),
                    Err(error) => {
                        let keep = self.lane.cached.take();
                        self.storage_failed(keep, &error)
                    }
                },
            };
        }
        let request_id = ask_request.then_some(&self.command.request_id);
        let probe = match self
            .kernel
            .history
            .probe(self.command.key(), request_id)
            .await
        {
            Ok(probe) => probe,
            Err(error) => return self.storage_failed(Some(loaded), &error),
        };
        if let Some(commit) = probe.request {
            // The state may be older than that commit; only the load knows.
            self.lane.cached = (probe.newest_version == loaded.version).then_some(loaded);
            return self.answer_known(RequestRecord::from(&commit), commit.key);
        }
        if probe.newest_version != loaded.version {
            return Try::Again;
        }
        self.lane.cached = Some(loaded);
        Try::Answer(answer)
    }

    /// The same for failures of user code: there the state is dropped anyway (R32, R43).
    async fn confirm_request(&mut self, known: Knowledge, error: CommandError) -> Try {
        if known.request_new {
            return error.into();
        }
        match self.find_request().await {
            Ok(found) => found.unwrap_or_else(|| error.into()),
            Err(failed) => self.storage_failed(None, &failed),
        }
    }

    /// What the log says of the request, as an answer.
    async fn find_request(&mut self) -> Result<Option<Try>, StorageError> {
        let key = self.command.key();
        let found = self
            .kernel
            .requests
            .find(&key.tenant, &key.aggregate_type, &self.command.request_id)
            .await?;
        Ok(found.map(|commit| self.answer_known(RequestRecord::from(&commit), commit.key)))
    }

    /// Answers with what the request has committed, or refuses to show it (R13, R40).
    fn answer_known(&self, record: RequestRecord, key: AggregateKey) -> Try {
        let command = self.command;
        if record.command_id == command.command_id {
            return Try::Answer(Executed::Known {
                record,
                key,
                duplicate: false,
            });
        }
        let same_caller = *record.principal == *command.principal.subject_text()
            && record.owner == command.identity.owner;
        // A creation without an id got one of its own; the first try's is the answer (R12).
        let same_aggregate = key == *command.key() || command.aggregate_id_made;
        let same_command = *record.command_type == *command.definition.name;
        let nobody = self.kernel.mode == AccessMode::Jwt
            && command.principal.subject.is_none()
            && command.identity.owner.is_empty();
        if same_caller && same_aggregate && same_command && !nobody {
            Try::Answer(Executed::Known {
                record,
                key,
                duplicate: true,
            })
        } else {
            CommandError::RequestIdReused.into()
        }
    }

    /// The conflicts don't end: a last look at the request before saying so (R43, R52).
    async fn give_up(&mut self) -> Executed {
        let known = Knowledge {
            fresh: false,
            request_new: self.is_request_certain(),
        };
        match self.confirm_request(known, CommandError::Conflict).await {
            Try::Answer(answer) => answer,
            Try::Again => Executed::Failed(CommandError::Conflict),
        }
    }

    fn build_commit(&self, loaded: &Loaded, decided: &mut Decided) -> Commit {
        let command = self.command;
        Commit {
            partition: crate::partition::partition_of(command.key(), self.kernel.limits.partitions),
            position: 0,
            key: command.key().clone(),
            version: loaded.version + 1,
            request_id: command.request_id.clone(),
            command_id: command.command_id,
            command_type: Arc::clone(&command.definition.name),
            principal: Arc::from(command.principal.subject_text()),
            owner: command.identity.owner.clone(),
            space: command.identity.space.clone(),
            origin: command.origin.clone(),
            events: std::mem::take(&mut decided.events).into(),
            result: decided.result.clone(),
            headers: command.headers.clone(),
            committed_at: 0,
        }
    }
}
>>>>>>> refs/heads/backends
