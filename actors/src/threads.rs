//! The threads that actors live on.
//!
//! Lanes need threads of their own: an HTTP worker must not run users' command functions, and
//! under a plain tokio runtime there is no actix system at all. One thread runs the system; it
//! makes the arbiters.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, ArbiterHandle, Context, Message, System};
use tokio::sync::oneshot;

/// Where actors are placed.
#[derive(Debug, Clone)]
pub enum Placement {
    /// On so many arbiters of the node's own.
    Arbiters(usize),
    /// On the arbiter this runs on: for simulations and tests on a paused clock.
    Here,
}

/// Ends an actor.
#[derive(Debug, Clone, Copy, Message)]
#[rtype(result = "()")]
pub(crate) struct End;

/// The arbiters, and the thread that has made them.
#[derive(Debug)]
pub(crate) struct ActorThreads {
    pub(crate) arbiters: Vec<ArbiterHandle>,
    own: Option<OwnThread>,
}

/// The thread that runs the actix system.
#[derive(Debug)]
struct OwnThread {
    system: System,
    thread: JoinHandle<io::Result<()>>,
    /// Closed when the thread has nothing left to run.
    ended: oneshot::Receiver<()>,
}

/// What ending the threads takes at most. One that doesn't end by then is in a command function
/// that holds it, and goes with the process.
const END_MAX: Duration = Duration::from_secs(1);

impl ActorThreads {
    pub(crate) async fn start(placement: &Placement) -> io::Result<Self> {
        let count = match placement {
            Placement::Here => {
                return Ok(Self {
                    arbiters: vec![Arbiter::current()],
                    own: None,
                });
            }
            Placement::Arbiters(count) => (*count).max(1),
        };
        let (ready, started) = oneshot::channel();
        let (running, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("wow-system".to_owned())
            .spawn(move || {
                let _running = running;
                let runner = System::new();
                let arbiters: Vec<Arbiter> = (0..count).map(|_| Arbiter::new()).collect();
                let handles = arbiters.iter().map(Arbiter::handle).collect::<Vec<_>>();
                let _ = ready.send((handles, System::current()));
                let ended = runner.run();
                for arbiter in arbiters {
                    arbiter.stop();
                    // A panic of that thread was logged where it happened.
                    let _ = arbiter.join();
                }
                ended
            })?;
        let (arbiters, system) = started
            .await
            .map_err(|_| io::Error::other("the actors' thread ended before it was ready"))?;
        Ok(Self {
            arbiters,
            own: Some(OwnThread {
                system,
                thread,
                ended,
            }),
        })
    }

    /// Ends the threads. Only once the actors have nothing left to do.
    pub(crate) async fn stop(mut self) {
        let Some(own) = self.own.take() else {
            return;
        };
        own.system.stop();
        if tokio::time::timeout(END_MAX, own.ended).await.is_err() {
            tracing::error!("the actors' threads did not end: a command function blocks one");
            return;
        }
        // All that it still has to do is to return.
        if !matches!(own.thread.join(), Ok(Ok(()))) {
            tracing::error!("the actors' thread did not end in order");
        }
    }
}

/// Starts an actor on an arbiter, its mailbox as large as it has to be before anything is sent.
/// None when the arbiter is gone.
pub(crate) async fn place<A>(arbiter: &ArbiterHandle, mailbox: usize, actor: A) -> Option<Addr<A>>
where
    A: Actor<Context = Context<A>> + Send,
{
    let (ready, started) = oneshot::channel();
    arbiter.spawn_fn(move || {
        let address = A::create(|context| {
            context.set_mailbox_capacity(mailbox);
            actor
        });
        let _ = ready.send(address);
    });
    started.await.ok()
}

impl Drop for ActorThreads {
    fn drop(&mut self) {
        // A system that is dropped without a stop must not leave threads behind.
        if let Some(own) = self.own.take() {
            own.system.stop();
        }
    }
}
