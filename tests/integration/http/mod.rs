//! The public port over a real socket.

mod bad_input;
mod reads;
mod sse;
