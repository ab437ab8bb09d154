//! A command runtime for event-sourced services.

pub mod access;
pub mod admin;
pub mod config;
pub mod http;
pub mod node;
pub mod storage;
pub mod telemetry;

pub use wow_kernel as kernel;
