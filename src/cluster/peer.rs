//! Peer: this node's connection to another member.
//!
//! One task keeps it up. What is to be said waits in a bounded queue; the task takes all that is
//! there, writes it at once, and reads what comes back. While the connection is down a forward is
//! told so at once, for then its command may run here (R21).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;
use wow_kernel::forward::ForwardedCommand;
use wow_kernel::id::NodeName;
use wow_kernel::ports::{ForwardError, ForwardReply};

use super::message::{Message, MessageFault, append, codec};
use super::pending::{Forward, Waiting};
use super::wire::{self, Reading, Wire, Writing};
use super::{CONNECT_TIMEOUT, ClusterSettings, PING_EVERY, SILENCE_MAX, WRITE_TIMEOUT, handshake};

/// How many frames one write takes.
const BATCH: usize = 256;

/// How many signals and hints wait; beyond it they are lost, which storage makes up for.
const SAYINGS: usize = 4096;

/// The first pause after a failed connect; it doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(20);

/// The longest pause.
const RETRY_MAX: Duration = Duration::from_secs(1);

/// What is to be said to a peer.
#[derive(Debug)]
enum Saying {
    Forward(Arc<Forward>),
    Frame(Bytes),
}

/// The connection to one member; its task ends when this is dropped.
#[derive(Debug)]
pub(super) struct Peer {
    queue: mpsc::Sender<Saying>,
    permits: Arc<Semaphore>,
    waiting: Arc<Waiting>,
    next_id: AtomicU64,
    reply_timeout: Option<Duration>,
    stop: CancellationToken,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Peer {
    /// Begins to connect, on the runtime that this is called on.
    pub(super) fn start(
        runtime: &tokio::runtime::Handle,
        settings: Arc<ClusterSettings>,
        name: NodeName,
        address: String,
    ) -> Self {
        let (queue, sayings) = mpsc::channel(SAYINGS + settings.forwards);
        let (waiting, stop) = (Arc::new(Waiting::default()), CancellationToken::new());
        let peer = Self {
            queue,
            permits: Arc::new(Semaphore::new(settings.forwards)),
            waiting: Arc::clone(&waiting),
            next_id: AtomicU64::new(1),
            reply_timeout: settings.reply_timeout,
            stop: stop.clone(),
        };
        let line = Line {
            settings,
            name,
            address,
            waiting,
            sayings,
        };
        // Ends with the token, which the peer's drop cancels.
        runtime.spawn(async move { line.run(stop).await });
        peer
    }

    /// Sends a command, and waits for its answer as long as its caller does.
    pub(super) async fn forward(
        &self,
        command: ForwardedCommand,
        accepted: oneshot::Sender<()>,
    ) -> Result<ForwardReply, ForwardError> {
        let Ok(_permit) = self.permits.try_acquire() else {
            return Err(ForwardError::Full);
        };
        let limit = self
            .reply_timeout
            .map_or(command.time_left, |limit| limit.min(command.time_left));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = Message::Forward(id, Box::new(command))
            .encode()
            .map_err(|error| ForwardError::NotSent(error.to_string()))?;
        let (reply, answer) = oneshot::channel();
        let forward = Arc::new(Forward::new(id, frame, accepted, reply));
        match self.queue.try_send(Saying::Forward(Arc::clone(&forward))) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => return Err(ForwardError::Full),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                return Err(ForwardError::NotSent("the peer is gone".to_owned()));
            }
        }
        // Also where this future is dropped: what has not left must not leave any more.
        let _withdraws = Withdraws {
            forward: &forward,
            waiting: &self.waiting,
        };
        match timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_gone)) => Err(lost(&forward, "the connection's task ended")),
            Err(_late) => Err(lost(&forward, "no reply in time")),
        }
    }

    /// Says something that nobody waits for; `false` where there is no room for it.
    pub(super) fn say(&self, frame: Bytes) -> bool {
        // The forwards' share of the queue stays theirs.
        self.queue.capacity() > 0 && self.queue.try_send(Saying::Frame(frame)).is_ok()
    }
}

fn lost(forward: &Forward, reason: &str) -> ForwardError {
    match forward.withdraw() {
        true => ForwardError::NotSent(reason.to_owned()),
        false => ForwardError::NoAnswer(reason.to_owned()),
    }
}

/// Withdraws a forward that nobody waits for any more.
struct Withdraws<'a> {
    forward: &'a Forward,
    waiting: &'a Waiting,
}

impl Drop for Withdraws<'_> {
    fn drop(&mut self) {
        self.forward.withdraw();
        self.waiting.forget(self.forward.id);
    }
}

/// The task behind a peer.
struct Line {
    settings: Arc<ClusterSettings>,
    name: NodeName,
    address: String,
    waiting: Arc<Waiting>,
    sayings: mpsc::Receiver<Saying>,
}

impl Line {
    async fn run(mut self, stop: CancellationToken) {
        let mut pause = RETRY_MIN;
        loop {
            let connected = tokio::select! {
                () = stop.cancelled() => break,
                connected = self.connect() => connected,
            };
            let reason = match connected {
                Ok(wire) => {
                    tracing::info!(peer = %self.name, address = self.address, "connected");
                    pause = RETRY_MIN;
                    tokio::select! {
                        () = stop.cancelled() => break,
                        ended = self.speak(wire) => ended.to_string(),
                    }
                }
                Err(reason) => reason,
            };
            self.waiting.lose_all(&reason);
            tracing::debug!(peer = %self.name, address = self.address, reason, "not connected");
            if !self.refuse_for(pause, &reason, &stop).await {
                break;
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
        self.waiting.lose_all("this node has closed the connection");
        self.sayings.close();
        while let Ok(saying) = self.sayings.try_recv() {
            refuse(&saying, "this node has closed the connection");
        }
    }

    async fn connect(&self) -> Result<Wire, String> {
        let connecting = wire::connect(&self.address, self.settings.tls.as_ref());
        let connected = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")));
        let mut wire = connected.map_err(|error| error.to_string())?;
        match handshake::call(&mut wire, &self.settings, &self.name).await {
            Ok(()) => Ok(wire),
            Err(error) => {
                tracing::warn!(peer = %self.name, address = self.address, %error, "the handshake failed");
                Err(error.to_string())
            }
        }
    }

    /// While there is no connection, whoever wants to send is told at once. `false` when this
    /// ends for good.
    async fn refuse_for(
        &mut self,
        pause: Duration,
        reason: &str,
        stop: &CancellationToken,
    ) -> bool {
        let end = Instant::now() + pause;
        loop {
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep_until(end) => return true,
                saying = self.sayings.recv() => match saying {
                    Some(saying) => refuse(&saying, reason),
                    None => return false,
                },
            }
        }
    }

    /// Speaks until the connection ends; answers why it did.
    async fn speak(&mut self, wire: Wire) -> io::Error {
        let (reading, mut writing) = wire.into_inner();
        let (pongs, mut to_answer) = mpsc::channel(16);
        let listening = listen(
            reading,
            self.settings.frame_bytes_max,
            &self.waiting,
            &pongs,
        );
        let sayings = &mut self.sayings;
        let waiting = &self.waiting;
        let talking = async {
            let mut taken = Vec::with_capacity(BATCH);
            let mut buffer = BytesMut::with_capacity(64 * 1024);
            loop {
                tokio::select! {
                    count = sayings.recv_many(&mut taken, BATCH) => {
                        if count == 0 {
                            return io::Error::other("this node has closed the connection");
                        }
                    }
                    Some(frame) = to_answer.recv() => taken.push(Saying::Frame(frame)),
                    () = sleep(PING_EVERY) => match Message::Ping.encode() {
                        Ok(ping) => taken.push(Saying::Frame(ping)),
                        Err(error) => return io::Error::other(error),
                    },
                }
                for saying in taken.drain(..) {
                    match saying {
                        Saying::Forward(forward) if forward.begin() => {
                            waiting.insert(&forward);
                            append(&mut buffer, &forward.frame);
                        }
                        Saying::Forward(_withdrawn) => {}
                        Saying::Frame(frame) => append(&mut buffer, &frame),
                    }
                }
                if let Err(error) = write(&mut writing, &mut buffer).await {
                    return error;
                }
            }
        };
        tokio::select! {
            error = listening => error,
            error = talking => error,
        }
    }
}

fn refuse(saying: &Saying, reason: &str) {
    if let Saying::Forward(forward) = saying {
        forward.lose(reason);
    }
}

/// Writes all of a buffer, and empties it.
pub(super) async fn write(writing: &mut Writing, buffer: &mut BytesMut) -> io::Result<()> {
    let writing = async {
        writing.write_all(buffer).await?;
        // TLS keeps what it has encrypted until then.
        writing.flush().await
    };
    let written = timeout(WRITE_TIMEOUT, writing).await;
    buffer.clear();
    written.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it takes nothing")))
}

/// Reads replies until the connection ends; answers why it did.
async fn listen(
    reading: Reading,
    frame_bytes_max: usize,
    waiting: &Waiting,
    answers: &mpsc::Sender<Bytes>,
) -> io::Error {
    let mut frames = FramedRead::new(reading, codec(frame_bytes_max));
    loop {
        let frame = match timeout(SILENCE_MAX, frames.next()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return error,
            Ok(None) => return io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed"),
            Err(_silent) => return io::Error::new(io::ErrorKind::TimedOut, "it is silent"),
        };
        match Message::decode(&frame) {
            Ok(Message::Accepted(id)) => waiting.accepted(id),
            Ok(Message::Reply(id, reply)) => waiting.replied(id, *reply),
            Ok(Message::NotUnderstood(kind)) => {
                tracing::debug!(kind, "the peer doesn't know this kind of message");
            }
            Ok(Message::Ping) => {
                if let Ok(pong) = Message::Pong.encode() {
                    let _ = answers.try_send(pong);
                }
            }
            Ok(_) => {}
            Err(MessageFault::UnknownKind(kind)) => {
                if let Ok(answer) = Message::NotUnderstood(kind).encode() {
                    let _ = answers.try_send(answer);
                }
            }
            // A reply that can't be read leaves its caller waiting: it asks storage (R22).
            Err(error) => tracing::warn!(%error, "a peer's message was passed over"),
        }
    }
}
