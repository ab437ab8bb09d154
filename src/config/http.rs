//! `[http]`: the public port, and the limits that hold on every port.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::bytes::ByteSize;
use super::cores;
use super::keys::{Section, Visitor};
use super::setting::Auto;

const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// The public port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where it listens.
    pub bind: SocketAddr,
    /// Its worker threads; by itself one for each core.
    pub workers: Auto<usize>,
    /// The largest body (R5).
    pub max_body_bytes: ByteSize,
    /// The most that all headers of a request may take.
    pub max_header_bytes: ByteSize,
    /// The longest path and query.
    pub max_url_bytes: ByteSize,
    /// The most connections at one time.
    pub max_connections: usize,
    /// How long a client may take to send its headers.
    pub header_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a connection may be idle between requests.
    pub idle_timeout: Duration,
}

impl HttpConfig {
    /// How many worker threads.
    pub fn worker_count(&self) -> usize {
        self.workers.unwrap_or_else(cores)
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 8080)),
            workers: Auto::Auto,
            max_body_bytes: ByteSize::mib(1),
            max_header_bytes: ByteSize::kib(64),
            max_url_bytes: ByteSize::kib(8),
            max_connections: 25_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
        }
    }
}

impl Section for HttpConfig {
    const NAME: &'static str = "http";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let kib = |kib| ByteSize::kib(kib);
        keys.any("bind", &mut self.bind);
        // More than these, the HTTP server can't have.
        keys.within("workers", &mut self.workers, 1..=512);
        keys.within(
            "max-body-bytes",
            &mut self.max_body_bytes,
            kib(1)..=ByteSize::gib(1),
        );
        // The HTTP/1 parser itself gives up at 128 KiB.
        keys.within(
            "max-header-bytes",
            &mut self.max_header_bytes,
            kib(1)..=kib(128),
        );
        keys.within("max-url-bytes", &mut self.max_url_bytes, kib(1)..=kib(64));
        keys.within("max-connections", &mut self.max_connections, 1..=1_000_000);
        keys.within("header-timeout", &mut self.header_timeout, TIMEOUTS);
        keys.within("body-timeout", &mut self.body_timeout, TIMEOUTS);
        keys.within("idle-timeout", &mut self.idle_timeout, TIMEOUTS);
    }
}
