//! How files look: their size, their names, and that nothing in them is unfinished.

use std::path::PathBuf;

use crate::demand_none;
use crate::source::{holds_word, occurrences, sources};

/// Lines at which a file is told to be split, and at which the build fails.
const LINES_TOLD: usize = 400;
const LINES_MAX: usize = 600;

#[test]
fn files_are_short_enough_to_be_read() {
    let mut wrong = Vec::new();
    for file in sources() {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!("{}: {lines} lines", file.path));
        } else if lines > LINES_TOLD {
            eprintln!("{}: {lines} lines; consider splitting it", file.path);
        }
    }
    demand_none(&wrong, "split these files");
}

#[test]
fn nothing_unfinished_is_shipped() {
    let wrong = occurrences(&["todo!", "unimplemented!", "dbg!"], |_| true);
    demand_none(&wrong, "finish these");
    let marks = ["FIXME", "TODO", "XXX"];
    let marked = sources().into_iter().filter_map(|file| {
        let mark = marks.iter().find(|mark| holds_word(&file.text, mark))?;
        Some(format!("{}: {mark}", file.path))
    });
    demand_none(&marked.collect::<Vec<_>>(), "do it, or leave it");
}

#[test]
fn shipped_code_says_why_something_cannot_fail() {
    let wrong = occurrences(&[".unwrap()", ".unwrap_err()"], |file| {
        !file.is_in("macros/")
    });
    demand_none(
        &wrong,
        "handle the error, or `expect` with the reason why there is none",
    );
}

#[test]
fn names_say_what_is_inside() {
    let empty = [
        "util", "utils", "common", "helper", "helpers", "misc", "types", "manager",
    ];
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|file| {
            let parts = PathBuf::from(&file.path);
            parts
                .with_extension("")
                .iter()
                .any(|part| empty.contains(&part.to_str().unwrap()))
        })
        .map(|file| file.path)
        .collect();
    demand_none(&wrong, "name these for what is inside");
}
