//! One attempt at a command: state → duplicate → guards → decide, up to the append.

use std::sync::Arc;
use std::time::Duration;

use super::turn::{self, Turn};
use super::{
    Executed, Kernel, Knowledge, LaneState, LoadError, Loaded, Try, check_existence, check_scope,
};
use crate::command::BuiltCommand;
use crate::commit::Commit;
use crate::error::CommandError;
use crate::model::{DecideContext, Purity};
use crate::ports::StorageError;
use crate::registry::{DecideFault, Decided};

/// One command on its way through the kernel.
pub(super) struct Run<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) lane: &'a mut LaneState,
    pub(super) command: &'a Arc<BuiltCommand>,
    /// Whether an append was tried, so that the request may have committed after all (R54).
    pub(super) append_tried: bool,
}

impl Run<'_> {
    /// Runs the command once against the latest state.
    pub(super) async fn attempt(&mut self) -> Try {
        let (loaded, fresh) = match self.take_state().await {
            Ok(taken) => taken,
            Err(error) => return Box::pin(self.load_failed(&error)).await.into(),
        };
        let mut known = Knowledge {
            fresh,
            request_new: self.is_request_certain(),
        };
        if !known.request_new {
            if let Some(record) = loaded.recent.find(&self.command.request_id) {
                self.lane.cached = Some(loaded);
                return self.answer_known(record, self.command.key().clone()).into();
            }
            if self.command.definition.spec.purity == Purity::Impure {
                match self.find_request().await {
                    Ok(None) => known.request_new = true,
                    Ok(Some(commit)) => return self.answer_found(loaded, 0, &commit),
                    Err(error) => return self.storage_failed(Some(loaded), &error).into(),
                }
            }
        }
        if let Err(refusal) = self.guard(&loaded) {
            let refused = Executed::Failed(refusal);
            return Box::pin(self.confirm(loaded, known, refused)).await;
        }
        if self.has_nothing_to_recover(&loaded) {
            let unchanged = Executed::Unchanged {
                version: loaded.version,
                result: None,
            };
            return Box::pin(self.confirm(loaded, known, unchanged)).await;
        }
        self.decide(loaded, known).await
    }

    /// The state to decide on, and whether it was loaded just now.
    async fn take_state(&mut self) -> Result<(Box<Loaded>, bool), LoadError> {
        if let Some(cached) = self.lane.cached.take() {
            return Ok((cached, false));
        }
        let (loader, command) = (&self.kernel.loader, self.command);
        let (definition, key) = (&command.aggregate, command.key());
        let loaded = if command.aggregate_id_made && !self.append_tried {
            // An id that admission has just made can't have a history (R12).
            Loaded::initial(definition, key, loader.recent_requests)?
        } else {
            Box::pin(loader.load(definition, key)).await?
        };
        Ok((Box::new(loaded), true))
    }

    /// Without a state nothing can be decided; what the request committed is answered all the same.
    async fn load_failed(&mut self, error: &LoadError) -> Executed {
        tracing::error!(key = %self.command.key(), %error, "aggregate can't be loaded");
        match error {
            LoadError::Storage(StorageError::Unavailable(_)) => Executed::Failed(error.into()),
            _ => self.confirm_request(false, error.into()).await,
        }
    }

    /// R8's mark: a request id that admission made can't have committed, until an append was tried.
    pub(super) fn is_request_certain(&self) -> bool {
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

    /// The built-in recovery of what isn't deleted: its function sees no facts, so it is told here.
    fn has_nothing_to_recover(&self, loaded: &Loaded) -> bool {
        let spec = &self.command.definition.spec;
        spec.builtin && spec.recovers && !loaded.facts.deleted
    }

    async fn decide(&mut self, loaded: Box<Loaded>, known: Knowledge) -> Try {
        let (turn, slow) = self.run_function(&loaded).await;
        if let Some(took) = slow {
            self.tell_slow_turn(took);
        }
        match turn {
            Turn::Done(Ok(decided)) if !decided.events.is_empty() => {
                self.commit(loaded, known, decided).await
            }
            // What commits nothing is boxed: a command that commits shouldn't pay for its size.
            other => Box::pin(self.not_committed(loaded, known, other)).await,
        }
    }

    async fn not_committed(&mut self, loaded: Box<Loaded>, known: Knowledge, turn: Turn) -> Try {
        let answer = match turn {
            Turn::Done(Ok(decided)) => Executed::Unchanged {
                version: loaded.version,
                result: decided.result,
            },
            Turn::Done(Err(DecideFault::Rejected(rejection))) => Executed::Failed(rejection.into()),
            Turn::Done(Err(DecideFault::Unwritable(reason))) => {
                tracing::error!(command = ?self.command, reason, "the decision can't be written");
                Executed::Failed(CommandError::Unwritable { reason })
            }
            Turn::Done(Err(DecideFault::Ended)) => Executed::Failed(CommandError::ShuttingDown),
            // Failures of user code drop the state (R32).
            Turn::Panicked => {
                tracing::error!(command = ?self.command, "the command function panicked");
                drop(loaded);
                let answer = self.confirm_request(known.request_new, CommandError::Panicked);
                return answer.await.into();
            }
            Turn::TimedOut => {
                tracing::warn!(command = ?self.command, "deciding took too long");
                drop(loaded);
                let answer = self.confirm_request(known.request_new, CommandError::DecideTimeout);
                return answer.await.into();
            }
        };
        self.confirm(loaded, known, answer).await
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

    fn tell_slow_turn(&self, took: Duration) {
        let aggregate_type = self.command.aggregate.aggregate_type.as_str();
        let command_type = &*self.command.definition.name;
        tracing::warn!(aggregate_type, command_type, ?took, "slow turn");
        self.kernel
            .observer
            .slow_turn(aggregate_type, command_type, took);
    }

    pub(super) fn build_commit(&self, loaded: &Loaded, decided: &mut Decided) -> Commit {
        let command = self.command;
        Commit {
            partition: command.key_hash.partition(self.kernel.limits.partitions),
            position: 0,
            key: command.key().clone(),
            version: loaded.version + 1,
            request_id: command.request_id.clone(),
            command_id: command.command_id,
            command_type: Arc::clone(&command.definition.name),
            principal: command.principal.subject.clone().unwrap_or_default(),
            owner: command.identity.owner.clone(),
            space: command.identity.space.clone(),
            origin: command.origin.clone(),
            events: std::mem::take(&mut decided.events),
            result: decided.result.take(),
            headers: command.headers.clone(),
            committed_at: 0,
        }
    }
}
