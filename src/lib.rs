//! A command runtime for event-sourced services.

pub mod config;
pub mod telemetry;
