//! HeadPoller: notices entries that no lane of this node has handed over (R80).
//!
//! Owns: nothing.
//! Receives: nothing.
//! Sends: heads to the feeds.
//! Bounded by: one query at a time, for all partitions.
//! Ends when: the system stops.

use std::sync::Arc;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, WrapFuture};
use wow_kernel::id::PartitionNo;

use crate::shared::{Phase, Shared};

/// The actor.
#[derive(Debug)]
pub(crate) struct HeadPoller {
    pub(crate) shared: Arc<Shared>,
}

impl Actor for HeadPoller {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let shared = Arc::clone(&self.shared);
        context.spawn(
            poll(shared)
                .into_actor(self)
                .map(|(), _poller, context| context.stop()),
        );
    }
}

async fn poll(shared: Arc<Shared>) {
    let partitions: Vec<_> = (0..shared.kernel.limits.partitions)
        .map(PartitionNo)
        .collect();
    loop {
        tokio::select! {
            () = shared.clock.sleep(shared.limits.poll) => {}
            () = shared.in_phase(Phase::Stopping) => return,
        }
        match shared.kernel.log.heads(&partitions).await {
            Ok(heads) => {
                for found in heads {
                    shared.feeds.of(found.partition).note_head(found.head);
                }
            }
            Err(error) => tracing::warn!(%error, "heads can't be read yet"),
        }
    }
}
