//! What a command function may see and use beside the state.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Command, Rejection, RejectionKind};
use crate::access::Principal;
use crate::command::BuiltCommand;
use crate::error::CommandError;
use crate::id::{AggregateId, EpochMillis, Identity, Version};
use crate::ports::CommandSender;
use crate::result::CommandResult;
use crate::submission::Submission;

/// The services that users provide to their command functions, by type.
#[derive(Clone, Default)]
pub struct Services {
    by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    names: Vec<&'static str>,
}

impl Services {
    /// Provides a service; `T` is often an `Arc<dyn Trait>`.
    pub fn provide<T: Send + Sync + 'static>(&mut self, service: T) {
        self.names.push(type_name::<T>());
        self.by_type.insert(TypeId::of::<T>(), Arc::new(service));
    }

    /// The service of this type, if one was provided.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.by_type
            .get(&TypeId::of::<T>())
            .and_then(|service| service.downcast_ref())
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Services").field(&self.names).finish()
    }
}

/// What a command function gets beside state and command.
#[derive(Clone)]
pub struct DecideContext {
    pub(crate) command: Arc<BuiltCommand>,
    pub(crate) version: Version,
    pub(crate) now: EpochMillis,
    pub(crate) services: Arc<Services>,
    pub(crate) sender: Option<Arc<dyn CommandSender>>,
}

impl fmt::Debug for DecideContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecideContext")
            .field("command_id", &self.command.command_id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl DecideContext {
    /// Which aggregate, for which owner, in which space.
    pub fn identity(&self) -> &Identity {
        &self.command.identity
    }

    /// The aggregate's id.
    pub fn aggregate_id(&self) -> &AggregateId {
        &self.command.identity.key.id
    }

    /// The version of the state that is decided on.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The whole command: request id, headers, deadline.
    pub fn command(&self) -> &BuiltCommand {
        &self.command
    }

    /// Who sent it.
    pub fn principal(&self) -> &Principal {
        &self.command.principal
    }

    /// When deciding began.
    pub fn now(&self) -> EpochMillis {
        self.now
    }

    /// A service that the node was given with `provide`.
    ///
    /// # Errors
    /// A rejection `wow.command.service-missing`, when nothing of this type was provided.
    pub fn service<T: Send + Sync + 'static>(&self) -> Result<&T, Rejection> {
        self.services.get().ok_or_else(|| {
            Rejection::new(
                "wow.command.service-missing",
                format!("no {} was provided to this node", type_name::<T>()),
            )
            .kind(RejectionKind::Conflict)
        })
    }

    /// Sends another command and waits until it has committed: [`Self::submit`] for one that
    /// says no more than which aggregate it is for.
    ///
    /// # Errors
    /// What the other command answered.
    pub async fn send<C: Command>(
        &self,
        aggregate_id: &str,
        command: C,
    ) -> Result<CommandResult, CommandError> {
        self.submit(Submission::typed(command).aggregate_id(aggregate_id))
            .await
    }

    /// Sends another command, whatever the submission says of it, and waits until it has
    /// committed. Its caller is this command's. So are its tenant, its space and, for a type with
    /// owners, its owner, unless it names others.
    ///
    /// Its call chain holds this aggregate, so a cycle is refused with `wow.command.reentrant`,
    /// not deadlocked (R30). Deciding may happen again after a conflict (R52): a request id that
    /// is made from this command's lets the other command commit only once.
    ///
    /// # Errors
    /// What the other command answered; [`CommandError::SenderMissing`] where nothing can send.
    pub async fn submit(&self, submission: Submission) -> Result<CommandResult, CommandError> {
        let sender = self.sender.as_ref().ok_or(CommandError::SenderMissing)?;
        sender.send(submission.follows(&self.command)).await
    }
}
