//! Commands that run on another node, and those that another node has run here (R21 to R23).
//!
//! A command is sent to its partition's owner once. As long as none of it has left this node, or
//! no lane there has taken it, it may run here instead; from then on the owner's answer is the
//! answer, and where none comes, storage is asked once.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::oneshot;
use wow_kernel::error::{Bound, CommandError};
use wow_kernel::forward::{ForwardedAnswer, ForwardedCommand, Signal, result_map, result_text};
use wow_kernel::id::{NodeName, PartitionNo, Position};
use wow_kernel::ports::{ForwardError, ForwardReply, PeerChannel, PeerHandler};
use wow_kernel::router::{FallbackReason, PartitionOwner, Route, route};
use wow_kernel::submission::PermitClass;

use crate::handle::Handle;
use crate::lane::RunCommand;
use crate::outcome::Answer;
use crate::shared::Shared;
use crate::trace;
use crate::waits::StageReached;

impl Shared {
    /// Sends an admitted command to where it runs (R20, R21).
    pub(crate) async fn send_on(&self, run: RunCommand) {
        let key = run.command.key();
        let owner = self.routing.owner(self.partition_of_command(&run.command));
        match (
            route(self.router_of(&key.aggregate_type), &owner),
            &self.peers,
        ) {
            (Route::Forward(owner), Some(peers)) => {
                // Boxed, for most commands run here and should not carry its size.
                return Box::pin(self.forward(&**peers, &owner, run)).await;
            }
            // Without a channel to the other members, each node runs what it is sent.
            (Route::Here | Route::Forward(_), _) => {}
            (Route::Fallback(reason), _) => self.metrics.fallback(reason),
            // There is no topic.
            (Route::Topic, _) => self.metrics.fallback(FallbackReason::NoOwner),
        }
        self.dispatch(run);
    }

    async fn forward(&self, peers: &dyn PeerChannel, owner: &NodeName, mut run: RunCommand) {
        let now = self.clock.monotonic();
        let reply = match ForwardedCommand::of(&run.command, now) {
            Ok(command) => send(peers, owner, command, &mut run.sent).await,
            Err(error) => {
                tracing::error!(%error, "a command can't be forwarded");
                Ok(ForwardReply::NotCapable)
            }
        };
        let here = |reason: FallbackReason| {
            tracing::debug!(%owner, ?reason, command_id = %run.command.command_id, "runs here instead");
            self.metrics.fallback(reason);
        };
        match reply {
            Ok(ForwardReply::Done(answer)) => {
                self.metrics.forwarded(true);
                self.answer_forwarded(run, answer).await;
                return;
            }
            Err(ForwardError::NoAnswer(reason)) => {
                tracing::warn!(%owner, reason, command_id = %run.command.command_id, "no answer to a forwarded command");
                self.metrics.forwarded(false);
                self.answer_from_storage(run).await;
                return;
            }
            Ok(ForwardReply::NotOwner) => here(FallbackReason::NotOwner),
            Ok(ForwardReply::NotCapable) => here(FallbackReason::NotCapable),
            Err(ForwardError::NotSent(_)) => here(FallbackReason::NotSent),
            Err(ForwardError::Full) => here(FallbackReason::ForwardsFull),
        }
        self.dispatch(run);
    }

    async fn answer_forwarded(&self, run: RunCommand, answer: ForwardedAnswer) {
        let answer = match answer {
            ForwardedAnswer::Committed { version, result } => Answer::Committed {
                version,
                result: result_map(result),
            },
            ForwardedAnswer::Known {
                record,
                key,
                duplicate,
            } => Answer::Known {
                record: Box::new(record.into()),
                key,
                duplicate,
            },
            ForwardedAnswer::Unchanged { version, result } => Answer::Unchanged {
                version,
                result: result_map(result),
            },
            ForwardedAnswer::Failed(error) => Answer::Failed(error),
            ForwardedAnswer::Lost => return self.answer_from_storage(run).await,
        };
        run.answer(answer);
    }

    /// The owner may have run it: what storage says is the answer, and a time-out where it says
    /// nothing (R22).
    async fn answer_from_storage(&self, run: RunCommand) {
        let answer = match self.kernel.look_up(&run.command).await {
            Ok(Some(executed)) => Answer::of(executed).0,
            Ok(None) => Answer::Failed(CommandError::Timeout),
            Err(error) => {
                tracing::warn!(%error, command_id = %run.command.command_id, "storage can't say what became of a command");
                Answer::Failed(CommandError::Timeout)
            }
        };
        run.answer(answer);
    }

    /// Tells the owner of a partition in which this node has committed (R80).
    pub(crate) fn hint_owner(&self, partition: PartitionNo, position: Position) {
        if let Some(peers) = &self.peers
            && let PartitionOwner::Peer(owner) = self.routing.owner(partition)
        {
            peers.hint_position(&owner, partition, position);
        }
    }
}

/// Sends, and tells SENT to a caller that asks for it once a lane of the owner's has the command.
async fn send(
    peers: &dyn PeerChannel,
    owner: &NodeName,
    command: ForwardedCommand,
    sent: &mut Option<oneshot::Sender<()>>,
) -> Result<ForwardReply, ForwardError> {
    let (accept, accepted) = oneshot::channel();
    let mut reply = peers.forward(owner, command, accept);
    if sent.is_none() {
        return reply.await;
    }
    tokio::select! {
        biased;
        Ok(()) = accepted => {
            if let Some(sent) = sent.take() {
                let _ = sent.send(());
            }
            reply.await
        }
        answered = &mut reply => answered,
    }
}

fn forwarded(answer: Answer) -> ForwardedAnswer {
    match answer {
        Answer::Committed { version, result } => ForwardedAnswer::Committed {
            version,
            result: result_text(result.as_deref()),
        },
        Answer::Known {
            record,
            key,
            duplicate,
        } => ForwardedAnswer::Known {
            record: (&*record).into(),
            key,
            duplicate,
        },
        Answer::Unchanged { version, result } => ForwardedAnswer::Unchanged {
            version,
            result: result_text(result.as_deref()),
        },
        Answer::Failed(error) => ForwardedAnswer::Failed(error),
    }
}

#[async_trait]
impl PeerHandler for Handle {
    async fn run_forwarded(
        &self,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> ForwardReply {
        let shared = self.shared();
        let is_owner = || {
            let partition = shared.partition_of(&command.key);
            shared.is_accepting() && shared.routing.owner(partition) == PartitionOwner::Here
        };
        if !is_owner() {
            return ForwardReply::NotOwner;
        }
        let Some(permit) = shared.permits.try_acquire(PermitClass::Internal) else {
            let bound = Bound::InFlight;
            shared.metrics.refused(bound);
            let busy = CommandError::Busy { bound };
            return ForwardReply::Done(ForwardedAnswer::Failed(busy));
        };
        // Again, with the permit in hand: a stop that doesn't count it is seen here.
        if !is_owner() {
            return ForwardReply::NotOwner;
        }
        let now = shared.clock.monotonic();
        let command = match command.into_command(&shared.registry, now) {
            Ok(command) => Arc::new(command),
            Err(error) => {
                tracing::warn!(%error, "not capable of a forwarded command");
                return ForwardReply::NotCapable;
            }
        };
        let span = trace::command_span(&command.headers);
        trace::name_command(&span, &command);
        let (reply, outcome) = oneshot::channel();
        shared.dispatch(RunCommand {
            command,
            reply,
            sent: Some(accepted),
            permit,
            span,
        });
        ForwardReply::Done(match outcome.await {
            Ok(Ok(outcome)) => forwarded(outcome.answer),
            Ok(Err(error)) => ForwardedAnswer::Failed(error),
            Err(_gone) => ForwardedAnswer::Lost,
        })
    }

    fn signalled(&self, signals: Vec<Signal>) {
        let reached = signals.into_iter().map(|signal| StageReached {
            command_id: signal.command_id,
            stage: signal.stage,
            function: Arc::new(signal.function),
            error: signal.error,
        });
        self.shared().tell_waits(reached);
    }

    fn position_hinted(&self, partition: PartitionNo, position: Position) {
        if partition.0 < self.shared().kernel.limits.partitions {
            self.shared().feeds.of(partition).note_head(position);
        }
    }

    fn ownership_hinted(&self) {
        self.shared().look_now.notify_one();
    }
}
