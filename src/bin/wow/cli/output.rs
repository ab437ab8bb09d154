//! Writing to standard output. A reader that goes away is an error here, not a panic.

use std::io::{self, Write as _};

use serde_json::Value;

/// Writes a text.
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Writes a JSON value, indented.
pub(super) fn print_json(value: &Value) -> io::Result<()> {
    print(&format!("{value:#}\n"))
}
