//! Telemetry: the log lines of a node, as text for people or as JSON for machines.
//!
//! A line carries the fields of the spans it lies in, so that all lines of one request can be
//! joined by their `command_id` and `trace_id`. The sink is a parameter: the process writes to
//! its standard error, tests to a buffer of their own.

mod json;

use std::io::{self, IsTerminal as _};
use std::str::FromStr as _;

use tracing::Subscriber;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use self::json::JsonLines;

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For machines: one flat JSON object a line.
    Json,
}

impl Format {
    /// Text where a person reads the process's standard error, else JSON.
    pub fn of_standard_error() -> Self {
        if io::stderr().is_terminal() {
            Self::Text
        } else {
            Self::Json
        }
    }
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// Which events: a level or a filter, such as `info,wow_actors=debug`.
    pub filter: String,
    /// How they are written.
    pub format: Format,
}

/// Why logging can't begin.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter can't be read.
    #[error("'{filter}' is no log filter: {source}; use one such as info,wow_actors=debug")]
    FilterInvalid {
        /// The filter.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The process logs already.
    #[error("the process has a log subscriber already; begin logging once, at its start")]
    AlreadyBegun(#[from] SetGlobalDefaultError),
}

/// Makes the subscriber that writes to a sink.
///
/// # Errors
/// [`TelemetryError::FilterInvalid`].
pub fn subscriber<W>(
    settings: &TelemetrySettings,
    sink: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter =
        EnvFilter::from_str(&settings.filter).map_err(|source| TelemetryError::FilterInvalid {
            filter: settings.filter.clone(),
            source,
        })?;
    let registry = Registry::default().with(filter);
    Ok(match settings.format {
        Format::Json => Box::new(registry.with(JsonLines::new(sink))),
        Format::Text => {
            let lines = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(sink);
            Box::new(registry.with(lines))
        }
    })
}

/// Logs to the process's standard error from now on.
///
/// # Errors
/// [`TelemetryError`]; a process begins once.
pub fn begin(settings: &TelemetrySettings) -> Result<(), TelemetryError> {
    let subscriber = subscriber(settings, io::stderr)?;
    Ok(tracing::subscriber::set_global_default(subscriber)?)
}

#[cfg(test)]
mod tests;
