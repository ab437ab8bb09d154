//! Randomness and ids, so that the simulator owns them.

use uuid::Uuid;

/// The kernel's only source of randomness.
pub trait Random: Send + Sync {
    /// A new UUIDv7.
    fn uuid(&self) -> Uuid;

    /// 64 random bits, for jitter.
    fn bits(&self) -> u64;
}
