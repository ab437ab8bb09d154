//! One client's connection and the one to the server behind it. Each direction reads ahead into a
//! queue and hands on from it; the rules are looked up when bytes are handed on.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Direction;
use super::pattern::Pattern;
use super::rules::{Flow, Progress, Report, Rules, Taken, Verdict};

/// Pieces that may wait in one direction.
const QUEUE: usize = 256;

/// Why a connection is cut: a trigger has fired, or one side was lost.
struct Cut(Option<Report>);

/// What goes one way: bytes, or the end of the stream; and not before its time.
struct Piece {
    due: Instant,
    bytes: Option<Vec<u8>>,
}

/// The answer at which a connection is to be cut.
type Awaited = Mutex<Option<(Pattern, Report)>>;

/// Runs a connection to its end.
pub(super) async fn run(client: TcpStream, server: SocketAddr, rules: Arc<Rules>, taken: Taken) {
    let cut = between(client, server, &rules).await;
    drop(taken);
    // Both sockets are closed by now, which is what a test waits for.
    if let Err(Cut(Some(report))) = cut {
        let _ = report.send(());
    }
}

async fn between(mut client: TcpStream, server: SocketAddr, rules: &Rules) -> Result<(), Cut> {
    let mut server = TcpStream::connect(server).await.map_err(|_| Cut(None))?;
    // Packets as the two would send them without a proxy.
    let _ = client.set_nodelay(true).and(server.set_nodelay(true));
    let awaited = Awaited::default();
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let asks = one_way(Direction::ToServer, from_client, to_server, rules, &awaited);
    let answers = one_way(Direction::ToClient, from_server, to_client, rules, &awaited);
    tokio::try_join!(asks, answers).map(|_| ())
}

async fn one_way(
    direction: Direction,
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    rules: &Rules,
    awaited: &Awaited,
) -> Result<(), Cut> {
    let (queue, queued) = mpsc::channel(QUEUE);
    let out = Out {
        direction,
        to,
        rules,
        awaited,
        flow: rules.flow(direction),
        progress: Progress::default(),
    };
    let read = read_ahead(from, queue, rules.flow(direction));
    tokio::try_join!(read, out.hand_on(queued)).map(|_| ())
}

/// Reads until the stream ends.
async fn read_ahead(
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Piece>,
    flow: watch::Receiver<Flow>,
) -> Result<(), Cut> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer).await.map_err(|_| Cut(None))?;
        let due = match *flow.borrow() {
            Flow::Delay(by) => Instant::now() + by,
            Flow::Pass | Flow::Stall => Instant::now(),
        };
        let bytes = (count > 0).then(|| buffer[..count].to_vec());
        let sent = queue.send(Piece { due, bytes }).await;
        if count == 0 || sent.is_err() {
            return Ok(());
        }
    }
}

/// The end of one direction.
struct Out<'a> {
    direction: Direction,
    to: WriteHalf<'a>,
    rules: &'a Rules,
    awaited: &'a Awaited,
    flow: watch::Receiver<Flow>,
    progress: Progress,
}

impl Out<'_> {
    /// Hands on what is queued, until the end of the stream.
    async fn hand_on(mut self, mut queued: mpsc::Receiver<Piece>) -> Result<(), Cut> {
        while let Some(Piece { due, bytes }) = queued.recv().await {
            sleep_until(due).await;
            let is_stalled = *self.flow.borrow_and_update() == Flow::Stall;
            match bytes {
                _ if is_stalled => return self.swallow(queued).await,
                Some(bytes) if self.direction == Direction::ToServer => self.ask(&bytes).await?,
                Some(bytes) => self.answer(&bytes).await?,
                None => return self.to.shutdown().await.map_err(|_| Cut(None)),
            }
        }
        Ok(())
    }

    /// Hands nothing on any more. When others flow again, this connection has lost bytes.
    async fn swallow(mut self, mut queued: mpsc::Receiver<Piece>) -> Result<(), Cut> {
        let swallow = async {
            while queued.recv().await.is_some() {}
            pending::<()>().await;
        };
        tokio::select! {
            () = swallow => {}
            _ = self.flow.wait_for(|flow| *flow != Flow::Stall) => {}
        }
        Err(Cut(None))
    }

    async fn ask(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        match self.rules.judge(&mut self.progress, bytes) {
            Verdict::HandOn => {}
            Verdict::Cut(count, report) => {
                self.write(&bytes[..count]).await?;
                return Err(Cut(Some(report)));
            }
            // Set before the server can know what to answer.
            Verdict::CutAtAnswer(pattern, report) => {
                *self.awaited.lock() = Some((pattern, report));
            }
        }
        self.write(bytes).await
    }

    async fn answer(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        {
            let mut awaited = self.awaited.lock();
            if let Some((pattern, _)) = awaited.as_mut() {
                if pattern.find(bytes).is_none() {
                    return Ok(());
                }
                return Err(Cut(awaited.take().map(|(_, report)| report)));
            }
        }
        self.write(bytes).await
    }

    /// Writes, up to the byte after which a connection is to be cut.
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        let cut = self.rules.cut_within(self.direction, bytes.len());
        let count = cut.as_ref().map_or(bytes.len(), |(count, _)| *count);
        // Counted first: who has the bytes finds them counted.
        self.rules.counters.count(self.direction, count);
        let written = self.to.write_all(&bytes[..count]).await;
        written.map_err(|_| Cut(None))?;
        match cut {
            Some((_, report)) => Err(Cut(Some(report))),
            None => Ok(()),
        }
    }
}
