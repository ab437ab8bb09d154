//! The channel between the nodes of one service.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::forward::{ForwardedAnswer, ForwardedCommand, Signal};
use crate::id::{NodeName, PartitionNo, Position};
use crate::ports::Member;

/// What the owner answered to a forwarded command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ForwardReply {
    /// A lane has had the command, or would have had it but for a bound: this is the answer (R23).
    Done(ForwardedAnswer),
    /// It doesn't own the partition, and no lane has taken the command (R21).
    NotOwner,
    /// It doesn't know the type or its revision, and no lane has taken the command (R21).
    NotCapable,
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

/// Sends to other nodes.
#[async_trait]
pub trait PeerChannel: Send + Sync {
    /// Has the owner run a command, and waits for its answer as long as the command's caller
    /// does. `accepted` is told when a lane of the owner's has taken it (R60).
    ///
    /// # Errors
    /// [`ForwardError`] says whether it may have arrived.
    async fn forward(
        &self,
        owner: &NodeName,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> Result<ForwardReply, ForwardError>;

    /// Tells an origin that stages were reached. Lost signals are made up for by R63.
    fn signal(&self, origin: &NodeName, signals: Vec<Signal>);

    /// Tells an owner that a partition has grown (R80).
    fn hint_position(&self, owner: &NodeName, partition: PartitionNo, position: Position);

    /// Tells everyone that partitions have changed hands (R77).
    fn hint_ownership(&self);

    /// Who there is, and where; told after every look at the leases.
    fn set_members(&self, members: &[Member]);
}

/// What other nodes ask of this one.
#[async_trait]
pub trait PeerHandler: Send + Sync {
    /// Runs a command that another node has admitted. `accepted` is told when a lane has taken
    /// it.
    async fn run_forwarded(
        &self,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> ForwardReply;

    /// Commits of this node's callers have reached stages.
    fn signalled(&self, signals: Vec<Signal>);

    /// Another node has committed to a partition.
    fn position_hinted(&self, partition: PartitionNo, position: Position);

    /// Partitions have changed hands.
    fn ownership_hinted(&self);
}
