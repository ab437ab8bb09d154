//! Events: the facts an aggregate commits, with names and revisions that outlive the code.

use serde_json::Value;
use serde_json::value::RawValue;

/// The events of one aggregate type, an enum; derive it with `#[derive(Event)]`.
///
/// The derive uses the enum's own serde derives for the bodies. Each variant is one event; its
/// name in the log is the variant's in snake_case unless declared.
pub trait Event: Clone + Send + Sync + 'static {
    /// Every event of the type.
    fn specs() -> &'static [EventSpec];

    /// The index of this event's spec.
    fn index(&self) -> usize;

    /// The body as the log stores it.
    ///
    /// # Errors
    /// What serde says of a value that JSON can't hold.
    fn encode(&self) -> Result<Box<RawValue>, serde_json::Error>;

    /// Reads a body of the current revision.
    ///
    /// # Errors
    /// What serde says of a body that isn't one.
    fn decode(index: usize, body: &RawValue) -> Result<Self, serde_json::Error>;
}

/// Lifts a body from an older revision to the current one, as JSON.
pub type UpcastFn = fn(revision: u32, body: Value) -> Result<Value, String>;

/// The declaration of one event.
#[derive(Debug, Clone, Copy)]
pub struct EventSpec {
    /// Its name in the log.
    pub name: &'static str,
    /// Names it had before.
    pub aliases: &'static [&'static str],
    /// The revision of bodies written now.
    pub revision: u32,
    /// Lifts older bodies.
    pub upcast: Option<UpcastFn>,
}

/// Why an entry's event can't be read. Never skipped: it stops what needs it (R50).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventFault {
    /// No event of the type has this name.
    #[error("event '{0}' is unknown here")]
    UnknownName(String),
    /// The body was written by a newer revision of the code.
    #[error("event '{name}' has revision {found}, this node knows {known}")]
    NewerRevision {
        /// The event.
        name: String,
        /// The body's revision.
        found: u32,
        /// The newest one known here.
        known: u32,
    },
    /// An older body, and no upcaster.
    #[error("event '{name}' has revision {found} and no upcaster")]
    NoUpcaster {
        /// The event.
        name: String,
        /// The body's revision.
        found: u32,
    },
    /// The body isn't what its revision says.
    #[error("event '{name}' can't be decoded: {reason}")]
    Body {
        /// The event.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// Reads a stored event, lifting it to the current revision first.
///
/// # Errors
/// [`EventFault`] says why it can't be read.
pub(crate) fn decode_stored<E: Event>(
    name: &str,
    revision: u32,
    body: &RawValue,
) -> Result<E, EventFault> {
    let (index, spec) = E::specs()
        .iter()
        .enumerate()
        .find(|(_, spec)| spec.name == name || spec.aliases.contains(&name))
        .ok_or_else(|| EventFault::UnknownName(name.to_owned()))?;
    let fault = |reason: String| EventFault::Body {
        name: name.to_owned(),
        reason,
    };
    if revision == spec.revision {
        return E::decode(index, body).map_err(|error| fault(error.to_string()));
    }
    if revision > spec.revision {
        return Err(EventFault::NewerRevision {
            name: name.to_owned(),
            found: revision,
            known: spec.revision,
        });
    }
    let upcast = spec.upcast.ok_or_else(|| EventFault::NoUpcaster {
        name: name.to_owned(),
        found: revision,
    })?;
    let old = serde_json::from_str(body.get()).map_err(|error| fault(error.to_string()))?;
    let new = upcast(revision, old).map_err(fault)?;
    let raw = serde_json::value::to_raw_value(&new).map_err(|error| fault(error.to_string()))?;
    E::decode(index, &raw).map_err(|error| fault(error.to_string()))
}
