//! A command runtime for event-sourced services.

pub mod access;
pub mod config;
pub mod node;
pub mod telemetry;
