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

/// Lines of columns, each as wide as its widest cell.
pub(super) fn table<const COLUMNS: usize>(
    header: [String; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> String {
    let lines: Vec<_> = std::iter::once(header).chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..COLUMNS).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:<width$}  "))
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
