//! What the running system promises, proven over the memory backend with faults.
//!
//! Most of it runs on one thread and a paused clock, where a gate holds a call and time passes
//! only when nothing else is left to do; what is about threads runs on threads.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "tests"
)]

mod bounds;
mod crashes;
mod death;
mod forwarding;
mod in_process;
mod lanes;
mod log_lines;
mod membership;
mod panics;
mod passivation;
mod placement;
mod routing;
mod saga_waits;
mod sagas;
mod sent;
mod snapshot_waits;
mod snapshots;
mod stop;
mod storm;
mod streams;
mod support;
mod vanish;
