//! The running system of a Wow node: the only place with actors.
//!
//! ```text
//! Handle ─Admit→ AdmissionActor ─Dispatch→ PartitionSupervisor ─RunCommand→ Lane
//!   ↑               │ Register                                              │ state view
//!   │               ↓                                                       ↓
//!   └──stages──── Waits ←──Reached── SnapshotRunner, SagaRunner ←──────── Feed
//!   └──outcome (a channel in the message) ← Lane          SagaRunner ─→ Handle
//! ```
//!
//! Requests go down this graph and never wait for an answer from a mailbox: answers travel in
//! channels that the messages carry, so no cycle can deadlock, and a caller that vanishes changes
//! nothing below. Commands that a lane or a saga sends enter at the top like any other, carrying
//! their call chain (R30).
//!
//! ```text
//! handle     the way in                        caller      outcome, stages and deadline of one
//! submit     the way in for actors             admission   makes commands of submissions
//! supervisor runs the lanes of a partition     isolation   where blocking functions run
//! lane       runs one aggregate's commands     directory   who has a lane, and each lane's gate
//! feed       commits on their way to runners   runner      snapshots and sagas, by checkpoint
//! waits      who waits for later stages        stages      which stages can be reached here
//! permits    bounds, taken before sending      routing     owners of partitions, and addresses
//! membership which partitions are this node's  tenure      one ownership of a partition
//! forward    commands to and from other nodes
//! system     starts and stops the tree         threads     what actors live on
//! vital      tells when one has ended          trace       joins a command's log lines
//! ```
//!
//! Invariants: a lane's address is held by the directory alone; a command is in a mailbox only
//! with a permit of the node and, at a lane, a slot of its gate; from the append on, work belongs
//! to the lane, never to its caller.

mod admission;
mod caller;
mod directory;
mod feed;
mod forward;
pub mod handle;
mod isolation;
mod lane;
mod limits;
mod membership;
mod metrics;
mod outcome;
mod permits;
mod routing;
mod runner;
mod shared;
mod stages;
mod submit;
mod supervisor;
pub mod system;
mod tasks;
mod tenure;
mod threads;
mod time;
mod trace;
mod vital;
mod waits;

pub use handle::{Handle, Send};
pub use isolation::BlockingPool;
pub use limits::Limits;
pub use membership::{ClaimError, MembershipConfig};
pub use metrics::Metrics;
pub use submit::Submit;
pub use system::{Ports, RunningSystem, StartError, StopReport, SystemConfig};
pub use threads::Placement;
pub use time::{NodeClock, NodeRandom};
