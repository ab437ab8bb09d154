//! What the HTTP server is told: addresses, threads, and a bound for everything a client sends.

use std::net::SocketAddr;
use std::time::Duration;

/// The settings of the public port.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Where to listen; port 0 takes a free one.
    pub bind: SocketAddr,
    /// How many threads serve.
    pub workers: usize,
    /// How many connections may be open at once; more wait in the kernel's queue.
    pub connections_max: usize,
    /// The largest body, in bytes (R5).
    pub body_bytes_max: usize,
    /// The longest path with query, in bytes.
    pub uri_bytes_max: usize,
    /// The most that all names and values of the headers may take, in bytes.
    pub header_bytes_max: usize,
    /// How long a client may take to send a request's head.
    pub head_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long an idle connection is kept.
    pub keep_alive: Duration,
    /// How long a graceful stop waits for answers under way, rounded up to seconds.
    pub stop_timeout: Duration,
    /// The wait of a caller that names none (R63).
    pub wait_timeout: Duration,
    /// The longest wait a caller may ask for.
    pub wait_timeout_max: Duration,
}

impl HttpSettings {
    /// The defaults, listening at an address.
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            connections_max: 10_000,
            body_bytes_max: 1 << 20,
            uri_bytes_max: 8 << 10,
            header_bytes_max: 64 << 10,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            stop_timeout: Duration::from_secs(60),
            wait_timeout: Duration::from_secs(30),
            wait_timeout_max: Duration::from_secs(300),
        }
    }
}
