//! One connection of another node to this one: its commands run here, and their outcomes go back.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::codec::FramedRead;
use wow_kernel::forward::ForwardedCommand;
use wow_kernel::id::NodeName;
use wow_kernel::ports::PeerHandler;

use super::message::{ForwardId, Message, MessageFault, append, codec};
use super::peer::write;
use super::wire::{Wire, Writing};
use super::{PING_EVERY, SILENCE_MAX};

/// How many commands of one peer run at once; what comes beyond it is read later.
const RUNNING: usize = 4096;

/// How many frames wait to be written.
const FRAMES: usize = 1024;

/// Serves a peer until its connection ends; answers why it did. What its commands have begun goes
/// on without it (R55).
pub(super) async fn serve(
    wire: Wire,
    peer: &NodeName,
    handler: Arc<dyn PeerHandler>,
    frame_bytes_max: usize,
) -> io::Error {
    let (reading, writing) = wire.into_inner();
    let (frames, to_write) = mpsc::channel(FRAMES);
    let running = Arc::new(Semaphore::new(RUNNING));
    let mut commands = JoinSet::new();
    let reading = async {
        let mut read = FramedRead::new(reading, codec(frame_bytes_max));
        loop {
            let frame = match timeout(SILENCE_MAX, read.next()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return error,
                Ok(None) => return io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed"),
                Err(_silent) => return io::Error::new(io::ErrorKind::TimedOut, "it is silent"),
            };
            while commands.try_join_next().is_some() {}
            match Message::decode(&frame) {
                Ok(Message::Forward(id, command)) => {
                    // The semaphore is never closed.
                    let Ok(permit) = Arc::clone(&running).acquire_owned().await else {
                        return io::Error::other("this node is closing");
                    };
                    let (handler, frames) = (Arc::clone(&handler), frames.clone());
                    commands.spawn(run(handler, frames, id, *command, permit));
                }
                Ok(Message::Signals(signals)) => handler.signalled(signals),
                Ok(Message::Position(partition, position)) => {
                    handler.position_hinted(partition, position);
                }
                Ok(Message::Ownership) => handler.ownership_hinted(),
                Ok(Message::Ping) => say(&frames, &Message::Pong).await,
                Ok(_) => {}
                Err(MessageFault::UnknownKind(kind)) => {
                    say(&frames, &Message::NotUnderstood(kind)).await;
                }
                Err(error) => tracing::warn!(%peer, %error, "a peer's message was passed over"),
            }
        }
    };
    tokio::select! {
        error = reading => error,
        error = talk(writing, to_write) => error,
    }
}

async fn run(
    handler: Arc<dyn PeerHandler>,
    frames: mpsc::Sender<Bytes>,
    id: ForwardId,
    command: ForwardedCommand,
    _permit: OwnedSemaphorePermit,
) {
    let (accept, accepted) = oneshot::channel();
    let mut outcome = handler.run_forwarded(command, accept);
    let reply = tokio::select! {
        biased;
        // The lane has it, or never will.
        taken = accepted => {
            if taken.is_ok() {
                say(&frames, &Message::Accepted(id)).await;
            }
            outcome.await
        }
        reply = &mut outcome => reply,
    };
    say(&frames, &Message::Reply(id, Box::new(reply))).await;
}

async fn say(frames: &mpsc::Sender<Bytes>, message: &Message) {
    match message.encode() {
        // One whose connection is gone has nobody to hear it.
        Ok(frame) => drop(frames.send(frame).await),
        Err(error) => tracing::error!(%error, "a message can't be written"),
    }
}

/// Writes what is there at once, and says now and then that this side lives.
async fn talk(mut writing: Writing, mut frames: mpsc::Receiver<Bytes>) -> io::Error {
    let mut taken = Vec::with_capacity(FRAMES);
    let mut buffer = BytesMut::with_capacity(64 * 1024);
    loop {
        tokio::select! {
            count = frames.recv_many(&mut taken, FRAMES) => {
                if count == 0 {
                    return io::Error::other("this node has closed the connection");
                }
            }
            () = sleep(PING_EVERY) => match Message::Ping.encode() {
                Ok(ping) => taken.push(ping),
                Err(error) => return io::Error::other(error),
            },
        }
        for frame in taken.drain(..) {
            append(&mut buffer, &frame);
        }
        if let Err(error) = write(&mut writing, &mut buffer).await {
            return error;
        }
    }
}
