//! A node that is a process: from its arguments to its exit code.
//!
//! The shipped binary runs on it as a service of one's own does; it adds only its other commands.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use super::builder::{NodeBuilder, NodeError};
use super::signal::StopSignal;
use super::{Addresses, Node, settings};
use crate::config::{Config, ConfigError, Misuse, Sources};
use crate::storage::OpenError;
use crate::telemetry::{self, TelemetryError};

/// Why a process that is a node ended otherwise than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The arguments say nothing that can be done.
    #[error("{0}\n\nUsage: [--config FILE] [--set KEY=VALUE]…")]
    Misuse(#[from] Misuse),
    /// The configuration is faulty.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Logging can't begin.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The node can't start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Threads, signals or standard output can't be had.
    #[error("the process can't run a node: {0}")]
    Process(#[from] io::Error),
}

impl ServeError {
    /// 2 where the process was misused, 1 where it failed.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Misuse(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Runs a node of one's own types until SIGTERM or SIGINT: the whole of a service's `main`.
///
/// The configuration is `./config.toml` or the file after `--config`, under the environment's
/// `WOW__…`, under each `--set key=value`. Faults go to standard error; the exit code is 0 once it
/// was told to stop, 1 where it failed, 2 where it was misused.
///
/// ```no_run
/// # use wow::prelude::*;
/// # fn service<Counter: Aggregate>() -> std::process::ExitCode {
/// // The body of `fn main() -> std::process::ExitCode`.
/// wow::node::run(|node| node.register::<Counter>())
/// # }
/// ```
#[must_use = "it is the exit code of the process"]
pub fn run(types: impl FnOnce(NodeBuilder) -> NodeBuilder) -> ExitCode {
    let served = NodeBuilder::from_environment()
        .map(types)
        .and_then(|node| node.serve(ToString::to_string));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to be told where that fails.
            let _ = writeln!(io::stderr(), "{error}");
            error.exit_code()
        }
    }
}

impl NodeBuilder {
    /// A node as the process's arguments, file and environment say; see [`run`].
    ///
    /// # Errors
    /// [`ServeError::Misuse`] and [`ServeError::Config`].
    pub fn from_environment() -> Result<Self, ServeError> {
        Self::from_arguments(std::env::args_os().skip(1))
    }

    /// The same, with these arguments.
    fn from_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, ServeError> {
        let sources = Sources::of_arguments(arguments)?;
        Ok(Self::from_config(Config::load(&sources)?))
    }

    /// Logs, starts the node on threads of its own, writes `greeting` to standard output once it
    /// listens, and returns after it was told to stop and has stopped (R34).
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn serve(self, greeting: impl FnOnce(&Addresses) -> String) -> Result<(), ServeError> {
        telemetry::begin(&settings::telemetry(&self.config))?;
        // What waits here is the node's stop; its work has threads of its own.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            // First of all, so that a stop is in order however early it comes.
            let mut signal = StopSignal::listen()?;
            let Some(node) = self.start_unless(&mut signal).await? else {
                return Ok(());
            };
            if let Err(error) = write(&greeting(node.addresses())) {
                node.stop().await;
                return Err(error.into());
            }
            node.run_until(signal).await;
            Ok(())
        })
    }
}

impl NodeBuilder {
    /// Starts the node; none where the process was told to stop before it stood. A start that
    /// waits for its database ends then; any other is soon done.
    async fn start_unless(self, signal: &mut StopSignal) -> Result<Option<Node>, NodeError> {
        let give_up = CancellationToken::new();
        let mut start = std::pin::pin!(self.give_up_on(give_up.clone()).start());
        tokio::select! {
            started = &mut start => return started.map(Some),
            _ = signal.received() => give_up.cancel(),
        }
        match start.await {
            Ok(node) => {
                node.stop().await;
                Ok(None)
            }
            Err(NodeError::Storage(OpenError::GivenUp)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn from(arguments: &[&str]) -> Result<NodeBuilder, ServeError> {
        NodeBuilder::from_arguments(arguments.iter().map(OsString::from))
    }

    #[test]
    fn arguments_lie_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("node.toml");
        std::fs::write(&file, "[context]\nname = \"shop\"\n[http]\nworkers = 3\n").unwrap();
        let file = file.to_str().unwrap();
        for arguments in [
            &["--config", file, "--set", "http.workers=7"][..],
            &["--set=http.workers=7", &format!("--config={file}")],
        ] {
            let config = from(arguments).unwrap().config;
            assert_eq!(config.context.name.as_str(), "shop");
            assert_eq!(config.http.worker_count(), 7);
        }
    }

    #[test]
    fn misuse_says_what_is_wrong_and_exits_with_2() {
        for (arguments, told) in [
            (&["serve"][..], "'serve'"),
            (&["--set"], "--set"),
            (&["--set", "http.workers"], "http.workers"),
            (&["--set", "=1"], "=1"),
            (
                &["--set", "http.workers=1", "--set", "http.workers=2"],
                "http.workers is set twice",
            ),
            (&["--config", "a", "--config", "b"], "--config"),
        ] {
            let error = from(arguments).unwrap_err();
            assert!(matches!(error, ServeError::Misuse(_)), "{error}");
            assert!(error.to_string().contains(told), "{error}");
            assert_eq!(error.exit_code(), ExitCode::from(2));
        }
        let faulty = from(&["--set", "http.workers=none"]).unwrap_err();
        assert_eq!(faulty.exit_code(), ExitCode::FAILURE);
    }
}
