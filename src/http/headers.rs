//! The headers of a request (spec/03): read in one pass, each at most once, and each with the
//! one meaning that the contract gives it.

use std::str::FromStr;
use std::time::Duration;

use actix_web::http::header::{HeaderMap, HeaderValue};
use wow_kernel::admission::{HEADER_BYTES_MAX, HEADERS_MAX};
use wow_kernel::error::CommandError;
use wow_kernel::id::{IdFault, Version};
use wow_kernel::wait::{Stage, StageFilter, WaitPlan};

macro_rules! known_headers {
    ($($variant:ident => $lower:literal, $shown:literal;)*) => {
        /// A header that the contract knows.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Known { $($variant,)* }

        impl Known {
            const COUNT: usize = [$($lower,)*].len();

            fn of(name: &str) -> Option<Self> {
                match name {
                    $($lower => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Its name as people write it.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$variant => $shown,)* }
            }
        }
    };
}

known_headers! {
    Tenant => "command-tenant-id", "Command-Tenant-Id";
    Owner => "command-owner-id", "Command-Owner-Id";
    Space => "command-space-id", "Command-Space-Id";
    WowSpace => "wow-space-id", "Wow-Space-Id";
    AggregateId => "command-aggregate-id", "Command-Aggregate-Id";
    Version => "command-aggregate-version", "Command-Aggregate-Version";
    RequestId => "command-request-id", "Command-Request-Id";
    LocalFirst => "command-local-first", "Command-Local-First";
    WaitStage => "command-wait-stage", "Command-Wait-Stage";
    WaitContext => "command-wait-context", "Command-Wait-Context";
    WaitProcessor => "command-wait-processor", "Command-Wait-Processor";
    WaitFunction => "command-wait-function", "Command-Wait-Function";
    WaitTimeout => "command-wait-timeout", "Command-Wait-Timeout";
    WaitTimout => "command-wait-timout", "Command-Wait-Timout";
    TailStage => "command-wait-tail-stage", "Command-Wait-Tail-Stage";
    TailContext => "command-wait-tail-context", "Command-Wait-Tail-Context";
    TailProcessor => "command-wait-tail-processor", "Command-Wait-Tail-Processor";
    TailFunction => "command-wait-tail-function", "Command-Wait-Tail-Function";
    CommandType => "command-type", "Command-Type";
    AggregateContext => "command-aggregate-context", "Command-Aggregate-Context";
    AggregateName => "command-aggregate-name", "Command-Aggregate-Name";
    Authorization => "authorization", "Authorization";
    ContentType => "content-type", "Content-Type";
    Traceparent => "traceparent", "traceparent";
}

const KEPT_PREFIX: &str = "command-header-";

/// The headers of one request.
#[derive(Debug)]
pub(super) struct RequestHeaders<'r> {
    known: [Option<&'r HeaderValue>; Known::COUNT],
    kept: Vec<(&'r str, &'r HeaderValue)>,
    all: &'r HeaderMap,
}

/// A header that can't be used.
pub(super) fn fault(name: impl Into<String>, reason: impl Into<String>) -> CommandError {
    CommandError::ParameterInvalid {
        name: name.into(),
        reason: reason.into(),
    }
}

fn text<'r>(name: &str, value: &'r HeaderValue) -> Result<&'r str, CommandError> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| fault(name, "it isn't UTF-8"))
}

impl<'r> RequestHeaders<'r> {
    /// Reads the headers.
    ///
    /// # Errors
    /// [`CommandError::ParameterInvalid`] for a header of the contract that is there twice.
    pub(super) fn read(all: &'r HeaderMap) -> Result<Self, CommandError> {
        let mut headers = Self {
            known: [None; Known::COUNT],
            kept: Vec::new(),
            all,
        };
        for (name, value) in all {
            let name = name.as_str();
            if let Some(known) = Known::of(name) {
                if headers.known[known as usize].replace(value).is_some() {
                    return Err(fault(known.name(), "it is there twice"));
                }
            } else if let Some(kept) = name.strip_prefix(KEPT_PREFIX) {
                headers.keep(kept, value)?;
            }
        }
        Ok(headers)
    }

    fn keep(&mut self, name: &'r str, value: &'r HeaderValue) -> Result<(), CommandError> {
        let fault = |reason: &str| Err(fault(format!("Command-Header-{name}"), reason));
        if name.is_empty() {
            return fault("it has no name");
        }
        if name == super::trace::TRACEPARENT || name == super::trace::TRACESTATE {
            return fault("the trace context has headers of its own");
        }
        if name.len().max(value.len()) > HEADER_BYTES_MAX {
            return fault("its name or value is longer than 1 KiB");
        }
        if self.kept.iter().any(|(kept, _)| *kept == name) {
            return fault("it is there twice");
        }
        if self.kept.len() == HEADERS_MAX {
            return fault("there are more than 32 of them");
        }
        self.kept.push((name, value));
        Ok(())
    }

    /// The text of a header, if it is there.
    pub(super) fn get(&self, known: Known) -> Result<Option<&'r str>, CommandError> {
        self.known[known as usize]
            .map(|value| text(known.name(), value))
            .transpose()
    }

    /// The text of an identity header. Empty is no way to say "any" (R3).
    pub(super) fn identity(
        &self,
        known: Known,
        fact: &'static str,
    ) -> Result<Option<&'r str>, CommandError> {
        match self.get(known)? {
            Some("") => Err(CommandError::IdentityInvalid {
                fact: fact.into(),
                fault: IdFault::Empty,
            }),
            other => Ok(other),
        }
    }

    /// A header that a command declares as a variable.
    pub(super) fn variable(&self, name: &str) -> Result<Option<&'r str>, CommandError> {
        let mut values = self.all.get_all(name);
        let value = values.next().map(|value| text(name, value)).transpose()?;
        match values.next() {
            Some(_) => Err(fault(name, "it is there twice")),
            None => Ok(value),
        }
    }

    /// The headers to keep with the command, without their prefix.
    pub(super) fn kept(&self) -> impl Iterator<Item = Result<(&'r str, &'r str), CommandError>> {
        self.kept.iter().map(|(name, value)| {
            text(&format!("Command-Header-{name}"), value).map(|value| (*name, value))
        })
    }

    /// The vendor part of the trace context: a list, so it may come in several headers.
    pub(super) fn tracestate(&self) -> Option<String> {
        let parts = self
            .all
            .get_all(super::trace::TRACESTATE)
            .filter_map(|part| part.to_str().ok());
        let joined = parts.collect::<Vec<_>>().join(",");
        (!joined.is_empty()).then_some(joined)
    }

    /// The bearer token, if there is one. Other schemes are for whoever stands before us.
    pub(super) fn bearer(&self) -> Result<Option<&'r str>, CommandError> {
        let Some(value) = self.get(Known::Authorization)? else {
            return Ok(None);
        };
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        Ok(scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()))
    }

    /// The version that the caller expects (R53).
    pub(super) fn expected_version(&self) -> Result<Option<Version>, CommandError> {
        self.get(Known::Version)?
            .map(|text| number(Known::Version.name(), text))
            .transpose()
    }

    /// Whether the caller lets the node run the command although another owns the aggregate.
    pub(super) fn local_first(&self) -> Result<Option<bool>, CommandError> {
        let Some(text) = self.get(Known::LocalFirst)? else {
            return Ok(None);
        };
        if text.eq_ignore_ascii_case("true") {
            Ok(Some(true))
        } else if text.eq_ignore_ascii_case("false") {
            Ok(Some(false))
        } else {
            Err(fault(Known::LocalFirst.name(), "use 'true' or 'false'"))
        }
    }

    /// What the caller waits for (R60 to R63).
    pub(super) fn wait_plan(
        &self,
        default: Duration,
        max: Duration,
    ) -> Result<WaitPlan, CommandError> {
        let stage = self.stage(Known::WaitStage)?.unwrap_or_default();
        let filter = self.filter(
            Known::WaitContext,
            Known::WaitProcessor,
            Known::WaitFunction,
        )?;
        let tail_filter = self.filter(
            Known::TailContext,
            Known::TailProcessor,
            Known::TailFunction,
        )?;
        let tail = match self.stage(Known::TailStage)? {
            Some(_) if stage != Stage::SagaHandled => {
                let reason = "a tail follows a saga: it goes with Command-Wait-Stage: SAGA_HANDLED";
                return Err(fault(Known::TailStage.name(), reason));
            }
            Some(tail) => Some((tail, tail_filter)),
            None if !tail_filter.is_any() => {
                return Err(fault(
                    Known::TailStage.name(),
                    "it is missing beside the tail's parts",
                ));
            }
            None => None,
        };
        Ok(WaitPlan {
            stage,
            filter,
            tail,
            timeout: self.timeout(default, max)?,
        })
    }

    fn stage(&self, known: Known) -> Result<Option<Stage>, CommandError> {
        let parse =
            |text| Stage::from_str(text).map_err(|error| fault(known.name(), error.to_string()));
        self.get(known)?.map(parse).transpose()
    }

    fn filter(
        &self,
        context: Known,
        processor: Known,
        function: Known,
    ) -> Result<StageFilter, CommandError> {
        let part = |known| -> Result<Option<String>, CommandError> {
            Ok(self
                .get(known)?
                .filter(|text| !text.is_empty())
                .map(str::to_owned))
        };
        Ok(StageFilter {
            context: part(context)?,
            processor: part(processor)?,
            function: part(function)?,
        })
    }

    fn timeout(&self, default: Duration, max: Duration) -> Result<Duration, CommandError> {
        let (known, text) = match (self.get(Known::WaitTimeout)?, self.get(Known::WaitTimout)?) {
            (Some(text), Some(old)) if text != old => {
                let reason = "it differs from Command-Wait-Timout, its old spelling";
                return Err(fault(Known::WaitTimeout.name(), reason));
            }
            (Some(text), _) => (Known::WaitTimeout, text),
            (None, Some(text)) => (Known::WaitTimout, text),
            (None, None) => return Ok(default),
        };
        let timeout = number(known.name(), text).map(Duration::from_millis);
        match timeout {
            Ok(timeout) if !timeout.is_zero() && timeout <= max => Ok(timeout),
            _ => {
                let reason = format!("use 1 to {} milliseconds", max.as_millis());
                Err(fault(known.name(), reason))
            }
        }
    }
}

/// Reads a whole number that isn't negative: digits and nothing else.
///
/// # Errors
/// [`CommandError::ParameterInvalid`], naming it.
pub(super) fn number(name: &str, text: &str) -> Result<u64, CommandError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| fault(name, "use a whole number that is not negative"))
}

#[cfg(test)]
mod tests;
