//! PartitionSupervisor: runs the lanes of one partition.
//!
//! Owns: its partition's shard of the lane directory.
//! Receives: [`Dispatch`] from admission, [`End`] from the system.
//! Sends: commands to lanes; a refusal to the caller where a lane is full.
//! Bounded by: the node's permits, which every command carries.
//! Ends when: the system stops, or the partition is given away.

use std::sync::Arc;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message};
use wow_kernel::error::{Bound, CommandError};
use wow_kernel::id::PartitionNo;

use crate::directory::LaneFull;
use crate::lane::RunCommand;
use crate::shared::Shared;
use crate::threads::End;
use crate::vital::Vital;

/// Runs a command on its lane.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Dispatch(pub(crate) RunCommand);

/// The actor.
#[derive(Debug)]
pub(crate) struct PartitionSupervisor {
    partition: PartitionNo,
    shared: Arc<Shared>,
    _vital: Vital,
}

impl PartitionSupervisor {
    pub(crate) fn new(partition: PartitionNo, shared: Arc<Shared>) -> Self {
        Self {
            partition,
            _vital: Vital::of(&shared, "supervisor"),
            shared,
        }
    }

    fn passivate(&self) {
        let (now, idle) = (
            self.shared.clock.monotonic(),
            self.shared.limits.idle_timeout,
        );
        let ended = self.shared.directory.passivate(self.partition, now, idle);
        self.shared.metrics.lanes_passivated(ended);
    }
}

impl Actor for PartitionSupervisor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let sweep = (self.shared.limits.idle_timeout / 4).max(std::time::Duration::from_millis(1));
        context.run_interval(sweep, |supervisor, _context| supervisor.passivate());
    }
}

impl Handler<Dispatch> for PartitionSupervisor {
    type Result = ();

    fn handle(&mut self, message: Dispatch, _context: &mut Self::Context) {
        let shared = &self.shared;
        let mut run = message.0;
        let sent = run.sent.take();
        match shared.directory.send(shared, self.partition, run) {
            Ok(()) => {
                // The lane has it: before it can begin, for it runs on this very thread (R60).
                if let Some(sent) = sent {
                    let _ = sent.send(());
                }
            }
            Err(LaneFull(run)) => {
                let bound = Bound::LaneQueue;
                shared.metrics.refused(bound);
                run.refuse(CommandError::Busy { bound });
            }
        }
    }
}

impl Handler<End> for PartitionSupervisor {
    type Result = ();

    // What is queued at its lanes is refused.
    fn handle(&mut self, _message: End, context: &mut Self::Context) {
        self.shared.directory.end(self.partition);
        context.stop();
    }
}
