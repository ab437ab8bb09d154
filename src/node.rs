//! The node: the one place that sees every part, and joins them.

pub mod settings;
