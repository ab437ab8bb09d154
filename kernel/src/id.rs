//! Identifiers: who and what a command, a commit or a partition is about.
//!
//! Every id is a newtype, so that a tenant can't be passed where an owner is meant.
//! Text ids are checked once, at the edge (R3), and compared byte for byte ever after.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest text id, in characters (R3).
pub const ID_CHARS_MAX: usize = 128;

/// The tenant of a request that names none (R3).
pub const DEFAULT_TENANT: &str = "(0)";

/// Request ids that begin with this are the system's own (R8).
pub const RESERVED_REQUEST_PREFIX: &str = "wow:";

/// Why a text is no id (R3).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum IdFault {
    /// Nothing, where an id is needed.
    #[error("it is empty")]
    Empty,
    /// More than [`ID_CHARS_MAX`] characters.
    #[error("it is longer than {ID_CHARS_MAX} characters")]
    TooLong,
    /// A control character or a slash.
    #[error("it contains a control character or '/'")]
    Character,
    /// A blank at an end.
    #[error("it begins or ends with a blank")]
    Blank,
    /// A character that can't be seen, where only visible ones are allowed.
    #[error("it contains a character other than visible ASCII")]
    Invisible,
    /// The reserved prefix, from a caller.
    #[error("ids beginning with '{RESERVED_REQUEST_PREFIX}' are reserved")]
    Reserved,
}

fn check(text: &str) -> Result<(), IdFault> {
    if text.is_empty() {
        return Err(IdFault::Empty);
    }
    // Nearly all ids are of visible ASCII: for those one look is enough.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    if text.len() <= ID_CHARS_MAX && text.bytes().all(is_plain) {
        return Ok(());
    }
    if text.chars().count() > ID_CHARS_MAX {
        return Err(IdFault::TooLong);
    }
    if text.chars().any(|c| c.is_control() || c == '/') {
        return Err(IdFault::Character);
    }
    if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return Err(IdFault::Blank);
    }
    Ok(())
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        // None is the empty text: most commands name no owner and no space.
        pub struct $name(Option<Arc<str>>);

        impl $name {
            /// Checks a text from outside.
            ///
            /// # Errors
            /// [`IdFault`] says what is wrong with the text (R3).
            pub fn parse(text: &str) -> Result<Self, IdFault> {
                check(text)?;
                Ok(Self::trusted(text))
            }

            /// Takes a text that was checked before: read from the log, or made by us.
            pub fn trusted(text: impl AsRef<str> + Into<Arc<str>>) -> Self {
                Self((!text.as_ref().is_empty()).then(|| text.into()))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                self.0.as_deref().unwrap_or("")
            }

            /// Whether it names nothing.
            pub fn is_empty(&self) -> bool {
                self.0.is_none()
            }
        }

        // As its text alone: whether there is one, the text says too, and ids are hashed often.
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::trusted)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

text_id!(
    /// The tenant an aggregate belongs to; `(0)` where nothing names one.
    TenantId
);
text_id!(
    /// The owner of an aggregate; empty where its type has none.
    OwnerId
);
text_id!(
    /// The space an aggregate lies in; empty where none is named.
    SpaceId
);
text_id!(
    /// The id of one aggregate within its tenant and type.
    AggregateId
);
text_id!(
    /// The registered name of an aggregate type, as the log stores it.
    AggregateType
);
text_id!(
    /// The name of a node, unique in its service.
    NodeName
);
text_id!(
    /// The id of one business request, chosen by the caller or made by admission (R8).
    RequestId
);

impl TenantId {
    /// The tenant `(0)`.
    pub fn default_tenant() -> Self {
        Self::trusted(DEFAULT_TENANT)
    }
}

impl OwnerId {
    /// No owner.
    pub fn none() -> Self {
        Self(None)
    }
}

impl SpaceId {
    /// No space.
    pub fn none() -> Self {
        Self(None)
    }
}

impl RequestId {
    /// Checks a caller's request id: 1 to 128 visible characters, not one of ours (R8).
    ///
    /// # Errors
    /// [`IdFault`] says what is wrong with it.
    pub fn from_caller(text: &str) -> Result<Self, IdFault> {
        if text.is_empty() {
            return Err(IdFault::Empty);
        }
        if text.len() > ID_CHARS_MAX {
            return Err(IdFault::TooLong);
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(IdFault::Invisible);
        }
        if text.starts_with(RESERVED_REQUEST_PREFIX) {
            return Err(IdFault::Reserved);
        }
        Ok(Self::trusted(text))
    }
}

/// The id of one built command, and of the commit it makes: a UUIDv7 made by admission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(pub Uuid);

impl CommandId {
    /// Reads the hyphenated form that the log stores.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Debug for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The version of an aggregate: the number of its commits. 0 is "not created yet".
pub type Version = u64;

/// A place in a partition of the log, contiguous from 1 (R80). 0 is "before the first".
pub type Position = u64;

/// Milliseconds since the Unix epoch, UTC.
pub type EpochMillis = i64;

/// The number of a partition of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartitionNo(pub u32);

impl fmt::Display for PartitionNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What names one aggregate: the unit of ordering, of a lane and of a version sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AggregateKey {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its type.
    pub aggregate_type: AggregateType,
    /// Its id.
    pub id: AggregateId,
}

impl fmt::Display for AggregateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tenant, self.aggregate_type, self.id)
    }
}

/// A key with the owner and space a command claims to act for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which aggregate.
    pub key: AggregateKey,
    /// For which owner; empty for none.
    pub owner: OwnerId,
    /// In which space; empty for none.
    pub space: SpaceId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_an_id_has_1_to_128_characters_and_no_control_slash_or_outer_blank() {
        for good in [
            "a",
            "a b",
            "é",
            &"x".repeat(128),
            &"é".repeat(128),
            "a:b.c-d_e",
        ] {
            assert!(AggregateId::parse(good).is_ok(), "{good}");
        }
        for (bad, fault) in [
            ("", IdFault::Empty),
            (&*"x".repeat(129), IdFault::TooLong),
            ("a/b", IdFault::Character),
            ("a\u{0}b", IdFault::Character),
            ("a\nb", IdFault::Character),
            (" a", IdFault::Blank),
            ("a\u{3000}", IdFault::Blank),
        ] {
            assert_eq!(AggregateId::parse(bad), Err(fault), "{bad:?}");
        }
    }

    #[test]
    fn r8_a_callers_request_id_is_visible_and_not_one_of_ours() {
        assert!(RequestId::from_caller("3f0c-1/é").is_err());
        assert!(RequestId::from_caller("3f0c-1/2").is_ok());
        assert_eq!(RequestId::from_caller("wow:s:x"), Err(IdFault::Reserved));
        assert_eq!(RequestId::from_caller("a b"), Err(IdFault::Invisible));
    }
}
