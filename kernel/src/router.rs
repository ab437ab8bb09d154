//! Where a command runs: one pure table (R20, R21).

use std::fmt;
use std::str::FromStr;

use crate::id::NodeName;

/// The router of an aggregate type (R20).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RouterKind {
    /// On the owner of the aggregate's partition.
    #[default]
    Partitioned,
    /// Where it arrived.
    Local,
    /// Through the context's command topic.
    Kafka,
}

/// A router that isn't one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no router: use partitioned, local or kafka")]
pub struct UnknownRouter(pub String);

impl FromStr for RouterKind {
    type Err = UnknownRouter;

    fn from_str(text: &str) -> Result<Self, UnknownRouter> {
        match text {
            "partitioned" => Ok(Self::Partitioned),
            "local" => Ok(Self::Local),
            "kafka" => Ok(Self::Kafka),
            other => Err(UnknownRouter(other.to_owned())),
        }
    }
}

impl fmt::Display for RouterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Partitioned => "partitioned",
            Self::Local => "local",
            Self::Kafka => "kafka",
        })
    }
}

/// Who owns a partition, as far as this node knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionOwner {
    /// This node.
    Here,
    /// Another one.
    Peer(NodeName),
    /// Nobody it knows of.
    Unknown,
}

/// Where to run a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Here, for this node owns the partition or the type is routed so.
    Here,
    /// Here, though this node isn't the owner (R21).
    Fallback(FallbackReason),
    /// On its owner.
    Forward(NodeName),
    /// Through the topic.
    Topic,
}

/// Why a command runs here though it should run elsewhere; each has its counter (R21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FallbackReason {
    /// No owner is known.
    NoOwner,
    /// The connection failed before the request was sent.
    NotSent,
    /// The peer answered that it isn't the owner.
    NotOwner,
    /// The peer doesn't know the type or its revision.
    NotCapable,
    /// Too many forwards to the peer are in flight.
    ForwardsFull,
}

/// The route of a command whose aggregate lies in a partition of this owner.
pub fn route(kind: RouterKind, owner: &PartitionOwner) -> Route {
    match (kind, owner) {
        (RouterKind::Kafka, _) => Route::Topic,
        (RouterKind::Local, _) | (RouterKind::Partitioned, PartitionOwner::Here) => Route::Here,
        (RouterKind::Partitioned, PartitionOwner::Peer(name)) => Route::Forward(name.clone()),
        (RouterKind::Partitioned, PartitionOwner::Unknown) => {
            Route::Fallback(FallbackReason::NoOwner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r20_each_router_has_its_route_and_r21_no_known_owner_means_here() {
        let peer = PartitionOwner::Peer(NodeName::trusted("b"));
        let table = [
            (RouterKind::Partitioned, PartitionOwner::Here, Route::Here),
            (
                RouterKind::Partitioned,
                peer.clone(),
                Route::Forward(NodeName::trusted("b")),
            ),
            (
                RouterKind::Partitioned,
                PartitionOwner::Unknown,
                Route::Fallback(FallbackReason::NoOwner),
            ),
            (RouterKind::Local, peer.clone(), Route::Here),
            (RouterKind::Local, PartitionOwner::Unknown, Route::Here),
            (RouterKind::Kafka, PartitionOwner::Here, Route::Topic),
            (RouterKind::Kafka, peer, Route::Topic),
        ];
        for (kind, owner, expected) in table {
            assert_eq!(route(kind, &owner), expected, "{kind} {owner:?}");
        }
    }
}
