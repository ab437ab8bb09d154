//! The cluster channel: what the nodes of one service say to each other on the internal port
//! (R76).
//!
//! ```text
//! message     what is said, and its form       handshake   who may speak, and how
//! channel     the kernel's port over peers     peer        this node's connection to another
//! server      the internal port                session     one connection of another node
//! pending     forwards that wait for a reply   wire  the bytes below, in TLS or plain
//! ```
//!
//! Each node opens one connection to each other member and sends its forwards, signals and hints
//! on it; replies come back on the same one. Whoever can't show the cluster's token is refused
//! before anything it says is read.

mod channel;
mod handshake;
mod message;
mod peer;
mod pending;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::time::Duration;

use subtle::ConstantTimeEq;
use wow_kernel::id::NodeName;

pub use channel::ClusterChannel;
pub use server::{BoundCluster, ClusterError, ClusterServer};
pub use wire::{ClusterTls, TlsError, TlsFiles};

/// The secret that all nodes of a service share; it is never shown.
#[derive(Clone)]
pub struct ClusterToken(Box<[u8]>);

impl ClusterToken {
    /// Takes the secret; none where it is empty, for that would let everyone in.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        (!secret.is_empty()).then(|| Self(secret.as_bytes().into()))
    }

    /// Whether a peer has shown it. The time this takes tells nothing but its length.
    fn is(&self, shown: &[u8]) -> bool {
        shown.ct_eq(&self.0).into()
    }
}

impl fmt::Debug for ClusterToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterToken(…)")
    }
}

/// How this node speaks to others.
#[derive(Debug, Clone)]
pub struct ClusterSettings {
    /// This node.
    pub node: NodeName,
    /// What all nodes share.
    pub token: ClusterToken,
    /// In which connections are; none leaves them in plain text.
    pub tls: Option<ClusterTls>,
    /// Forwards in flight to one peer (R21).
    pub forwards: usize,
    /// How long a reply may take at most; without, as long as the command's caller waits.
    pub reply_timeout: Option<Duration>,
    /// The largest frame: the largest body of a command, and what goes with it.
    pub frame_bytes_max: usize,
}

/// How long connecting and the handshake may take, each.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a connection says that it lives, …
const PING_EVERY: Duration = Duration::from_secs(1);

/// … and how long one may be silent before it is taken for dead.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// How long the system may take to take what is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
