//! What tells a process to stop.

use std::io;

/// SIGTERM or SIGINT, as of when it was listened for.
#[derive(Debug)]
pub struct StopSignal {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignal {
    /// Listens from now on: the signals no longer end the process. To be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// When the process can't listen for signals.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the first, and gives its name.
    pub async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(not(unix))]
impl StopSignal {
    /// Listens as soon as it is waited for.
    ///
    /// # Errors
    /// None here.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the first, and gives its name.
    pub async fn received(&mut self) -> &'static str {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "this process can't listen for signals; it stops");
        }
        "interrupt"
    }
}
