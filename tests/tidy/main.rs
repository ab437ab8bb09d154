//! Holds the shape of the repository: which package and module may see which, how large a file
//! may be, and what must stand in one place only. Rules that clippy can hold are clippy's.
#![allow(clippy::unwrap_used, reason = "tests")]

mod config;
mod deploy;
mod form;
mod modules;
mod packages;
mod source;
mod tables;

use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Fails with all that is wrong, and with what to do about it.
fn demand_none(wrong: &[String], advice: &str) {
    assert!(wrong.is_empty(), "{advice}:\n  {}", wrong.join("\n  "));
}
