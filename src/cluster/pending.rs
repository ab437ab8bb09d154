//! Forwards that wait for their reply, and what is known of each: whether any of it may have left
//! this node decides where the command may run (R21, R22).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wow_kernel::ports::{ForwardError, ForwardReply};

use super::message::ForwardId;

/// It waits in this node.
const QUEUED: u8 = 0;
/// Its first byte may have left.
const SENT: u8 = 1;
/// Its caller has given up while it was still here: it is never sent.
const WITHDRAWN: u8 = 2;

/// A forward on its way.
#[derive(Debug)]
pub(super) struct Forward {
    pub(super) id: ForwardId,
    /// Its frame.
    pub(super) frame: Bytes,
    state: AtomicU8,
    ends: Mutex<Ends>,
}

/// Who waits for it.
#[derive(Debug)]
struct Ends {
    accepted: Option<oneshot::Sender<()>>,
    reply: Option<oneshot::Sender<Result<ForwardReply, ForwardError>>>,
}

impl Forward {
    pub(super) fn new(
        id: ForwardId,
        frame: Bytes,
        accepted: oneshot::Sender<()>,
        reply: oneshot::Sender<Result<ForwardReply, ForwardError>>,
    ) -> Self {
        let ends = Ends {
            accepted: Some(accepted),
            reply: Some(reply),
        };
        Self {
            id,
            frame,
            state: AtomicU8::new(QUEUED),
            ends: Mutex::new(ends),
        }
    }

    /// It is about to be written; `false` where its caller has withdrawn it.
    pub(super) fn begin(&self) -> bool {
        self.state
            .compare_exchange(QUEUED, SENT, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Its caller gives up; `true` where nothing of it has left, and nothing will.
    pub(super) fn withdraw(&self) -> bool {
        self.state
            .compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    fn accepted(&self) {
        if let Some(accepted) = self.ends.lock().accepted.take() {
            let _ = accepted.send(());
        }
    }

    /// Answers its caller, who may be gone.
    pub(super) fn answer(&self, answer: Result<ForwardReply, ForwardError>) {
        if let Some(reply) = self.ends.lock().reply.take() {
            let _ = reply.send(answer);
        }
    }

    /// There is no connection: what has not left may run elsewhere, the rest can't be known.
    pub(super) fn lose(&self, reason: &str) {
        self.answer(Err(match self.withdraw() {
            true => ForwardError::NotSent(reason.to_owned()),
            false => ForwardError::NoAnswer(reason.to_owned()),
        }));
    }
}

/// The forwards of one connection that have been written.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<ForwardId, Arc<Forward>>>);

impl Waiting {
    pub(super) fn insert(&self, forward: &Arc<Forward>) {
        self.0.lock().insert(forward.id, Arc::clone(forward));
    }

    /// Nobody waits for it any more.
    pub(super) fn forget(&self, id: ForwardId) {
        self.0.lock().remove(&id);
    }

    pub(super) fn accepted(&self, id: ForwardId) {
        let forward = self.0.lock().get(&id).map(Arc::clone);
        if let Some(forward) = forward {
            forward.accepted();
        }
    }

    pub(super) fn replied(&self, id: ForwardId, reply: ForwardReply) {
        let forward = self.0.lock().remove(&id);
        if let Some(forward) = forward {
            forward.answer(Ok(reply));
        }
    }

    /// The connection is gone.
    pub(super) fn lose_all(&self, reason: &str) {
        let lost: Vec<_> = self.0.lock().drain().collect();
        for (_, forward) in lost {
            forward.lose(reason);
        }
    }
}
