//! `[log]`: the shape of the log.

use super::bytes::ByteSize;
use super::keys::{Section, Visitor};

/// The shape of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// How many partitions it has. Written at the first start, and fixed from then on.
    pub partitions: u32,
    /// The largest entry; a larger one is refused before it is appended.
    pub max_entry_bytes: ByteSize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            partitions: 64,
            max_entry_bytes: ByteSize::mib(1),
        }
    }
}

impl Section for LogConfig {
    const NAME: &'static str = "log";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let entry = ByteSize::kib(1)..=ByteSize::mib(64);
        keys.within("partitions", &mut self.partitions, 1..=4096);
        keys.within("max-entry-bytes", &mut self.max_entry_bytes, entry);
    }
}
