//! How storage fails, as far as the kernel acts on it.

/// Why a read or an idempotent write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Storage can't be reached, or refuses for now; nothing was done.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// A row isn't what this code wrote.
    #[error("storage holds a row that can't be read: {0}")]
    Corrupt(String),
}

/// Why an append failed. Adapters tell these apart by constraint, never by a general state (R44).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The version is taken.
    #[error("another commit has this version")]
    VersionConflict,
    /// The request id is taken, for this tenant and type.
    #[error("another commit has this request id")]
    DuplicateRequest,
    /// The append may have happened (R54).
    #[error("whether the append happened is unknown: {0}")]
    OutcomeUnknown(String),
    /// Nothing was sent to storage.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
    /// The queue of the log writer is full; nothing was sent.
    #[error("the log writer is busy")]
    Busy,
    /// Storage refuses this entry whenever it comes; nothing was written.
    #[error("storage refuses the entry: {0}")]
    Refused(String),
}
