//! Why a command failed, and how that is told.

use std::io;
use std::process::ExitCode;

use wow::config::ConfigError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The configuration can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The answer can't be written.
    #[error("the output can't be written: {0}")]
    Output(#[from] io::Error),
    /// The node can't be served.
    #[error(transparent)]
    Serve(#[from] wow::node::ServeError),
    /// The node can't start.
    #[error(transparent)]
    Node(#[from] wow::node::NodeError),
    /// The node that was to be loaded doesn't do as asked.
    #[error(transparent)]
    Bench(#[from] super::bench::TargetError),
    /// Storage fails.
    #[error(transparent)]
    Read(#[from] wow::kernel::ports::StorageError),
    /// Storage can't be opened.
    #[error(transparent)]
    Storage(#[from] wow::storage::OpenError),
    /// What was found is told already.
    #[error("")]
    Told,
}

impl Failure {
    /// Tells it on standard error, and gives the exit code.
    pub(super) fn report(&self) -> ExitCode {
        match self {
            // Whoever read the output has read enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::Told => ExitCode::FAILURE,
            told => {
                eprintln!("wow: {told}");
                ExitCode::FAILURE
            }
        }
    }
}
