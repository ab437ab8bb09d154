//! Writing to standard output. A reader that goes away is an error here, not a panic.

use std::io::{self, Write as _};

use serde::Serialize;

/// Writes a text.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Writes a value as indented JSON; what is JSON already stays byte for byte.
pub(super) fn print_json(value: &impl Serialize) -> io::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}
