//! PartitionSupervisor: runs the lanes of one partition.
//!
//! Owns: its partition's shard of the lane directory.
//! Receives: [`Dispatch`] from admission.
//! Sends: commands to lanes; a refusal to the caller where a lane is full.
//! Bounded by: the node's permits, which every command carries.
//! Ends when: the system stops, or the partition is given away.

use std::sync::Arc;

use actix::{Actor, AsyncContext, Context, Handler, Message};
use wow_kernel::error::{Bound, CommandError};
use wow_kernel::id::PartitionNo;
use wow_kernel::wait::Stage;

use crate::directory::LaneFull;
use crate::lane::{Lane, RunCommand};
use crate::outcome::{Answer, Outcome};
use crate::shared::Shared;

/// Runs a command on its lane.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Dispatch(pub(crate) RunCommand);

/// The actor.
#[derive(Debug)]
pub(crate) struct PartitionSupervisor {
    partition: PartitionNo,
    shared: Arc<Shared>,
}

impl PartitionSupervisor {
    pub(crate) fn new(partition: PartitionNo, shared: Arc<Shared>) -> Self {
        Self { partition, shared }
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
        let now = shared.clock.monotonic();
        let mut run: RunCommand = message.0;
        // Who waits for SENT is answered as soon as a lane has taken the command (R60).
        let sent = (run.command.wait.stage == Stage::Sent)
            .then(|| {
                run.reply
                    .take()
                    .map(|reply| (reply, Arc::clone(&run.command)))
            })
            .flatten();
        let result = shared.directory.send(self.partition, now, run, |record| {
            Lane::spawn(shared, record)
        });
        let (reply, command, answer) = match (result, sent) {
            (Ok(()), None) => return,
            (Ok(()), Some((reply, command))) => (Some(reply), command, Answer::Sent),
            (Err(LaneFull(refused)), sent) => {
                shared.metrics.refused(Bound::LaneQueue);
                let answer = Answer::Failed(CommandError::Busy {
                    bound: Bound::LaneQueue,
                });
                let reply = refused.reply.or(sent.map(|(reply, _)| reply));
                (reply, refused.command, answer)
            }
        };
        if let Some(reply) = reply {
            let _ = reply.send(Ok(Outcome { command, answer }));
        }
    }
}
