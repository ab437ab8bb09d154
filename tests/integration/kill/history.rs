//! What clients have seen: what they sent, when, and what they were told.

use crate::support::database::Key;

/// The order in which clients saw things happen: one counter for all of them.
pub(crate) type Moment = u64;

/// Everything that was seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) requests: Vec<Request>,
    pub(crate) reads: Vec<Read>,
}

/// One business request, sent once or more.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) ask: Ask,
    pub(crate) attempts: Vec<Attempt>,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// An account with a balance; without an id, admission makes one.
    Create { id: Option<String>, balance: i64 },
    /// A transfer.
    Prepare {
        from: String,
        to: String,
        amount: i64,
    },
    /// So many more of a product in a cart.
    Add {
        owner: String,
        product: String,
        quantity: i64,
    },
}

impl Ask {
    pub(crate) fn aggregate_type(&self) -> &'static str {
        match self {
            Self::Create { .. } | Self::Prepare { .. } => "account",
            Self::Add { .. } => "cart",
        }
    }

    pub(crate) fn command_type(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create_account",
            Self::Prepare { .. } => "prepare",
            Self::Add { .. } => "add_cart_item",
        }
    }

    /// The aggregate that the caller names.
    pub(crate) fn target(&self) -> Option<&str> {
        match self {
            Self::Create { id, .. } => id.as_deref(),
            Self::Prepare { from, .. } => Some(from),
            Self::Add { owner, .. } => Some(owner),
        }
    }
}

/// One sending of a request.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// Which life of the node it was sent to, counted from 1.
    pub(crate) life: u32,
    pub(crate) sent: Moment,
    /// When the answer was there, or known not to come.
    pub(crate) ended: Moment,
    pub(crate) answer: Answer,
}

/// What an attempt was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Committed(Acknowledged),
    /// Refused for good, with this code: nothing was committed.
    Refused(String),
    /// Turned away: this attempt has committed nothing.
    TurnedAway,
    /// Nobody can tell.
    Unknown,
}

/// A commit, as its caller was told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) key: Key,
    pub(crate) version: i64,
    /// The command that committed.
    pub(crate) command_id: String,
    /// The command that this attempt made.
    pub(crate) own_command_id: String,
    pub(crate) duplicate: bool,
    /// Whether the snapshot holds it.
    pub(crate) in_snapshot: bool,
}

/// A read of a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) key: Key,
    pub(crate) sent: Moment,
    /// The version that was read.
    pub(crate) version: i64,
}
