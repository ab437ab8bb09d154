//! What a request has committed before, and whether an answer still holds (R40 to R43, R58).

use super::attempt::Run;
use super::{Executed, Kernel, Knowledge, Loaded, Try};
use crate::access::AccessMode;
use crate::command::BuiltCommand;
use crate::commit::Commit;
use crate::error::CommandError;
use crate::id::{AggregateKey, Version};
use crate::ports::StorageError;
use crate::recent::RequestRecord;

impl Run<'_> {
    /// An answer other than a commit is given only once it is known that the request hasn't
    /// committed (R43), and that a cached state was still the newest (R58).
    pub(super) async fn confirm(
        &mut self,
        loaded: Box<Loaded>,
        known: Knowledge,
        answer: Executed,
    ) -> Try {
        if known.fresh {
            return self.confirm_fresh(loaded, known, answer).await;
        }
        let request_id = (!self.is_request_certain()).then_some(&self.command.request_id);
        let history = &self.kernel.history;
        let probe = match history.probe(self.command.key(), request_id).await {
            Ok(probe) => probe,
            Err(error) => return self.storage_failed(Some(loaded), &error).into(),
        };
        if let Some(commit) = probe.request {
            return self.answer_found(loaded, probe.newest_version, &commit);
        }
        if probe.newest_version != loaded.version {
            return Try::Again;
        }
        self.lane.cached = Some(loaded);
        Try::Answer(answer)
    }

    /// A state that was loaded for this command needs no second read; the request may.
    async fn confirm_fresh(
        &mut self,
        loaded: Box<Loaded>,
        known: Knowledge,
        answer: Executed,
    ) -> Try {
        if !known.request_new {
            match self.find_request().await {
                Ok(None) => {}
                Ok(Some(commit)) => return self.answer_found(loaded, 0, &commit),
                Err(error) => return self.storage_failed(Some(loaded), &error).into(),
            }
        }
        self.lane.cached = Some(loaded);
        Try::Answer(answer)
    }

    /// The same for failures that leave no state: there only the request can be asked for.
    pub(super) async fn confirm_request(
        &mut self,
        request_new: bool,
        error: CommandError,
    ) -> Executed {
        if request_new || self.is_request_certain() {
            return Executed::Failed(error);
        }
        match self.find_request().await {
            Ok(None) => Executed::Failed(error),
            Ok(Some(commit)) => self.answer_known(RequestRecord::from(&commit), commit.key),
            Err(failed) => self.storage_failed(None, &failed),
        }
    }

    /// The commit of the request, as the log has it.
    pub(super) async fn find_request(&self) -> Result<Option<Commit>, StorageError> {
        let key = self.command.key();
        self.kernel
            .requests
            .find(&key.tenant, &key.aggregate_type, &self.command.request_id)
            .await
    }

    /// Answers with the commit of the request, and keeps the state unless the log is known to be
    /// ahead of it: at this version at least.
    pub(super) fn answer_found(
        &mut self,
        loaded: Box<Loaded>,
        newest: Version,
        commit: &Commit,
    ) -> Try {
        let is_behind = newest > loaded.version
            || (commit.version > loaded.version && commit.key == *self.command.key());
        self.lane.cached = (!is_behind).then_some(loaded);
        let answer = self.answer_known(RequestRecord::from(commit), commit.key.clone());
        Try::Answer(answer)
    }

    pub(super) fn answer_known(&self, record: RequestRecord, key: AggregateKey) -> Executed {
        self.kernel.answer_known(self.command, record, key)
    }

    pub(super) fn storage_failed(
        &mut self,
        keep: Option<Box<Loaded>>,
        error: &StorageError,
    ) -> Executed {
        tracing::warn!(key = %self.command.key(), %error, "storage failed before the append");
        self.lane.cached = keep;
        Executed::Failed(error.into())
    }
}

impl Kernel {
    /// What the log says of a command that was sent elsewhere, and of which no answer has come
    /// (R22); none where its request hasn't committed.
    ///
    /// # Errors
    /// [`StorageError`].
    pub async fn look_up(&self, command: &BuiltCommand) -> Result<Option<Executed>, StorageError> {
        let key = command.key();
        let found = self
            .requests
            .find(&key.tenant, &key.aggregate_type, &command.request_id)
            .await?;
        Ok(found.map(|commit| {
            let record = RequestRecord::from(&commit);
            self.answer_known(command, record, commit.key)
        }))
    }

    /// Answers with what the request has committed, or refuses to show it (R13, R40).
    fn answer_known(
        &self,
        command: &BuiltCommand,
        record: RequestRecord,
        key: AggregateKey,
    ) -> Executed {
        let record = Box::new(record);
        if record.command_id == command.command_id {
            return Executed::Known {
                record,
                key,
                duplicate: false,
            };
        }
        let same_caller = *record.principal == *command.principal.subject_text()
            && record.owner == command.identity.owner;
        // A creation without an id got one of its own; the first try's is the answer (R12).
        let same_aggregate = key == *command.key() || command.aggregate_id_made;
        let same_command = *record.command_type == *command.definition.name;
        let nobody = self.mode == AccessMode::Jwt
            && command.principal.subject.is_none()
            && command.identity.owner.is_empty();
        if same_caller && same_aggregate && same_command && !nobody {
            Executed::Known {
                record,
                key,
                duplicate: true,
            }
        } else {
            Executed::Failed(CommandError::RequestIdReused)
        }
    }
}
