//! `[telemetry]`: what the node tells about itself.

use std::str::FromStr;

use tracing_subscriber::EnvFilter;

use super::keys::{Section, Visitor};
use super::setting::{Auto, choice, text_setting};

/// Which events are logged, as `info` or `info,wow_actors=debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    fn parse(text: &str) -> Option<Self> {
        let is_filter = !text.trim().is_empty() && EnvFilter::from_str(text).is_ok();
        is_filter.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_setting!(
    LogFilter,
    "a level or a filter, such as \"info\" or \"info,wow_actors=debug\"",
    |text| Self::parse(text),
    |value| value.as_str()
);

/// Where traces are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    fn parse(text: &str) -> Option<Self> {
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))?;
        (!rest.is_empty() && !rest.contains(char::is_whitespace)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_setting!(
    Endpoint,
    "an address such as \"http://127.0.0.1:4317\"",
    |text| Self::parse(text),
    |value| value.as_str()
);

choice! {
    /// How log lines are written.
    pub enum LogFormat {
        /// For people.
        Text = "text",
        /// For machines, one JSON object a line.
        Json = "json",
    }
}

/// What the node tells about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// Which events are logged.
    pub log: LogFilter,
    /// How they are written; by itself as text on a terminal, else as JSON.
    pub format: Auto<LogFormat>,
    /// Where traces are sent to.
    pub otlp_endpoint: Option<Endpoint>,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            log: LogFilter("info".to_owned()),
            format: Auto::Auto,
            otlp_endpoint: None,
        }
    }
}

impl Section for TelemetryConfig {
    const NAME: &'static str = "telemetry";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("log", &mut self.log);
        keys.any("format", &mut self.format);
        keys.any("otlp-endpoint", &mut self.otlp_endpoint);
    }
}
