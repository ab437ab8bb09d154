//! Storage: the log, snapshots and checkpoints of a node, and every read of them, on a database.
//!
//! ```text
//! callers ── append, save, move ──▶ writer  ── batch ──▶ BatchStore ─┐
//!        └── find, load, probe ──▶ batcher ── batch ──▶ Reads ───────┴─▶ sqlite (others beside it)
//! ```
//!
//! A database implements two traits: `BatchStore` writes a batch in one transaction, `Reads`
//! answers a batch of questions. All else is shared: what may be in a batch (`batch`), what
//! follows when it fails (`writer`), rows (`rows`), the statements that read (`sql`), what the
//! database says of itself (`meta`), how a server is opened and its connections are kept
//! (`server`), leases on a connection of their own (`leases`), and [`Storage`], which implements the kernel's ports.
//!
//! All I/O runs on the runtime that is handed in: a connection belongs to the runtime that made
//! it, and callers live on threads that may be busy with user code. A caller holds a reply
//! channel; when it goes away, nothing is cancelled.

mod batch;
mod batcher;
mod error;
mod file;
mod leases;
mod meta;
mod mysql;
mod node;
mod observer;
mod ownership;
mod postgres;
mod queue;
mod reader;
mod readers;
mod reads;
mod rows;
mod server;
mod settings;
mod show;
mod sql;
mod sqlite;
mod verify;
mod writer;

pub use error::OpenError;
pub use file::DatabaseFile;
pub use meta::Meta;
pub use node::Storage;
pub use observer::{BatchOutcome, ReadBatch, ReadKind, StorageObserver, Unobserved, WrittenBatch};
pub use ownership::{Ownership, PartitionReach};
pub use reader::StorageReader;
pub use settings::{BatchLimits, Durability, Password, QueueLimits, StorageSettings};
pub use show::ShownCommit;
pub use verify::{Finding, Progress, Report, Step};
