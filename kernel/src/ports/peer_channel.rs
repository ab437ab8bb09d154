//! The channel between the nodes of one service.

use std::sync::Arc;

use async_trait::async_trait;

use crate::command::BuiltCommand;
use crate::error::CommandError;
use crate::id::{CommandId, NodeName, PartitionNo, Position};
use crate::result::CommandResult;

/// What the owner answered to a forwarded command.
#[derive(Debug, Clone)]
pub enum ForwardReply {
    /// It ran the command, to this end.
    Done(Box<CommandResult>),
    /// It doesn't own the partition, and no lane has taken the command (R21).
    NotOwner,
    /// It doesn't know the type or its revision, and no lane has taken the command (R21).
    NotCapable,
    /// It refuses; that is the answer (R23).
    Refused(CommandError),
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Not a byte of the request has left: it may run here (R21).
    #[error("the peer can't be reached: {0}")]
    NotSent(String),
    /// Too many forwards to this peer are in flight (R21).
    #[error("too many forwards to this peer are in flight")]
    Full,
    /// It may have arrived: it must not run here (R22).
    #[error("the request was sent and no answer came: {0}")]
    NoAnswer(String),
}

/// A stage that a commit has reached, on its way to the node where its caller waits.
#[derive(Debug, Clone)]
pub struct Signal {
    /// The command that committed.
    pub command_id: CommandId,
    /// What happened.
    pub result: Arc<CommandResult>,
}

/// Sends to other nodes.
#[async_trait]
pub trait PeerChannel: Send + Sync {
    /// Has the owner run a command.
    ///
    /// # Errors
    /// [`ForwardError`] says whether it may have arrived.
    async fn forward(
        &self,
        owner: &NodeName,
        command: Arc<BuiltCommand>,
    ) -> Result<ForwardReply, ForwardError>;

    /// Tells an origin that stages were reached. Lost signals are made up for by R63.
    fn signal(&self, origin: &NodeName, signals: Vec<Signal>);

    /// Tells an owner that a partition has grown (R80).
    fn hint_position(&self, owner: &NodeName, partition: PartitionNo, position: Position);
}
