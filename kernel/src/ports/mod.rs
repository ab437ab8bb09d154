//! What the kernel needs of the world, one trait a file. Adapters implement them; the
//! conformance suites say what an implementation has to hold.
//!
//! Every port is object safe and shared by `Arc`. A method that gives up because its caller
//! went away must leave nothing half done.

mod authorizer;
mod checkpoint_store;
mod clock;
mod command_sender;
mod command_topic;
mod commit_log;
mod error;
mod history;
mod isolation;
mod lease_store;
mod observer;
mod peer_channel;
mod random;
mod request_lookup;
mod snapshot_store;

pub use authorizer::Authorizer;
pub use checkpoint_store::{Checkpoint, CheckpointStore};
pub use clock::Clock;
pub use command_sender::CommandSender;
pub use command_topic::{CommandTopic, TopicError};
pub use commit_log::{AppendReceipt, CommitLog, PartitionHead};
pub use error::{AppendError, StorageError};
pub use history::{ColdHistory, History, Probe};
pub use isolation::{InPlace, Isolation};
pub use lease_store::{LeaseStore, Member, MemberClaim, MemberState, PartitionLease};
pub use observer::{KernelObserver, Unobserved};
pub use peer_channel::{ForwardError, ForwardReply, PeerChannel, PeerHandler};
pub use random::Random;
pub use request_lookup::RequestLookup;
pub use snapshot_store::SnapshotStore;
