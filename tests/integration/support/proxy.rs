//! A network with faults between a client and a server: a TCP proxy on loopback, whose behaviour a
//! test switches while connections are open. Tests of storage put it between a node and its
//! database, and find out what the node makes of an answer that never came.
//!
//! Here is what a test says; `rules` holds it, `connection` obeys it, `pattern` finds words in
//! streams.

mod connection;
mod pattern;
mod rules;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use rules::{Flow, Rules, Then, Trigger};

/// What sqlx sends to PostgreSQL to commit, and how PostgreSQL's answer begins. A bare `COMMIT`
/// would find the name of a table, too.
pub(crate) const POSTGRES_COMMIT: &[u8] = b"COMMIT\0";

/// The packet in which sqlx tells MySQL and MariaDB to commit.
pub(crate) const MYSQL_COMMIT: &[u8] = b"\x07\0\0\0\x03COMMIT";

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

/// What has passed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Connections taken from clients.
    pub(crate) connections: u64,
    /// Those of them that are open.
    pub(crate) open: u64,
    /// Bytes handed to the server.
    pub(crate) to_server: u64,
    /// Bytes handed to clients.
    pub(crate) to_client: u64,
}

/// A proxy that passes everything until told otherwise. Dropped, it and its connections end.
#[derive(Debug)]
pub(crate) struct Proxy {
    server: SocketAddr,
    address: SocketAddr,
    rules: Arc<Rules>,
    connections: Arc<Mutex<JoinSet<()>>>,
    /// Takes connections; none while they are refused.
    listening: Mutex<Option<JoinHandle<()>>>,
    /// Bound and never listening: nobody else gets the port while connections are refused.
    _reserved: TcpSocket,
}

impl Proxy {
    /// Begins to listen on a free port of loopback, in front of a server.
    pub(crate) fn start(server: SocketAddr) -> Self {
        let reserved = bind("127.0.0.1:0".parse().unwrap());
        let address = reserved.local_addr().unwrap();
        let proxy = Self {
            server,
            address,
            rules: Arc::default(),
            connections: Arc::default(),
            listening: Mutex::default(),
            _reserved: reserved,
        };
        proxy.accept();
        proxy
    }

    /// Where clients find the server now.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes everything, at once, in both directions, and takes new connections. Triggers stay
    /// set. Connections that lost bytes while stalled are cut: a network brings all or nothing.
    pub(crate) fn pass(&self) {
        self.accept();
        self.rules.set_flow(Direction::ToServer, Flow::Pass);
        self.rules.set_flow(Direction::ToClient, Flow::Pass);
    }

    /// Has new connections refused, as where no server runs. Those that are open stay.
    pub(crate) async fn refuse(&self) {
        let listening = self.listening.lock().take();
        if let Some(listening) = listening {
            listening.abort();
            // Once the task is gone, so is its socket.
            let _ = listening.await;
        }
    }

    /// Takes new connections again.
    pub(crate) fn accept(&self) {
        let mut listening = self.listening.lock();
        if listening.is_none() {
            let listener = bind(self.address).listen(1024).unwrap();
            let connections = self.connections.clone();
            let serve = serve(listener, self.server, self.rules.clone(), connections);
            *listening = Some(tokio::spawn(serve));
        }
    }

    /// Cuts all connections that are open; when it returns, none is left.
    pub(crate) async fn cut(&self) {
        let mut connections = std::mem::take(&mut *self.connections.lock());
        connections.shutdown().await;
    }

    /// Has every byte take so long in one direction. What it is that follows stays in order.
    pub(crate) fn delay(&self, direction: Direction, by: Duration) {
        self.rules.set_flow(direction, Flow::Delay(by));
    }

    /// Takes what comes from one side and hands none of it on, not even the end of the stream;
    /// connections stay open.
    pub(crate) fn stall(&self, direction: Direction) {
        self.rules.set_flow(direction, Flow::Stall);
    }

    /// Hands exactly so many bytes on from now, over all connections, and cuts the one on which
    /// the last of them went.
    pub(crate) fn cut_after(&self, direction: Direction, bytes: u64) -> Fired {
        let (fired, wait) = oneshot::channel();
        self.rules.set_cut_after(direction, bytes, fired);
        Fired(wait)
    }

    /// Cuts a connection between what the server does and its answer: once a client has sent these
    /// words, in whatever case, they are handed on, and the first answer to come then is dropped.
    ///
    /// For clients that wait for each answer before they go on, as the first answer could else be
    /// one to something earlier; see `cut_at_answer`.
    pub(crate) fn cut_before_answer(&self, asked: &[u8]) -> Fired {
        self.cut_at_answer(asked, b"")
    }

    /// As `cut_before_answer`, and waits until the server has said certain words, such as those
    /// with which it confirms a commit. Nothing that it says before reaches the client either.
    pub(crate) fn cut_at_answer(&self, asked: &[u8], answered: &[u8]) -> Fired {
        self.set_trigger(asked, Then::DropAnswer(answered.to_vec()))
    }

    /// Cuts a connection as soon as a client has sent these words, in whatever case; the server
    /// never gets all of them.
    pub(crate) fn cut_before_request(&self, asked: &[u8]) -> Fired {
        self.set_trigger(asked, Then::DropRequest)
    }

    /// What has passed.
    pub(crate) fn traffic(&self) -> Traffic {
        let counters = &self.rules.counters;
        Traffic {
            connections: counters.connections.load(Relaxed),
            open: counters.open.load(Relaxed),
            to_server: counters.passed[Direction::ToServer as usize].load(Relaxed),
            to_client: counters.passed[Direction::ToClient as usize].load(Relaxed),
        }
    }

    fn set_trigger(&self, asked: &[u8], then: Then) -> Fired {
        assert!(!asked.is_empty(), "every stream holds no words at all");
        let (fired, wait) = oneshot::channel();
        self.rules.set_trigger(Trigger {
            asked: asked.to_vec(),
            then,
            fired,
        });
        Fired(wait)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.lock().take() {
            listening.abort();
        }
        // Those taken from now on go with the set itself.
        self.connections.lock().abort_all();
    }
}

/// Tells when a trigger has fired. Each fires once; a later one of its kind takes its place.
#[derive(Debug)]
#[must_use = "a test that doesn't wait for a fault doesn't know that there was one"]
pub(crate) struct Fired(oneshot::Receiver<()>);

impl Fired {
    /// Waits until it has, and its connection is cut.
    pub(crate) async fn wait(self) {
        let fired = self.0.await;
        fired.expect("another took its place, or its connection ended without the answer");
    }

    /// Whether it has.
    pub(crate) fn has_fired(&mut self) -> bool {
        self.0.try_recv().is_ok()
    }
}

/// A socket that shares its port with others of its kind, as long as only one of them listens.
fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

async fn serve(
    listener: TcpListener,
    server: SocketAddr,
    rules: Arc<Rules>,
    connections: Arc<Mutex<JoinSet<()>>>,
) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let taken = rules.counters.take_connection();
        let mut connections = connections.lock();
        while connections.try_join_next().is_some() {}
        connections.spawn(connection::run(client, server, rules.clone(), taken));
    }
}
