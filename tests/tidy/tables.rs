//! What stands in one table, or in one kind of file.

use std::collections::BTreeSet;
use std::fs;

use wow::http::{ERROR_TABLE, ErrorRow};

use crate::source::{quoted_texts, shipped_sources};
use crate::{demand_none, root};

#[test]
fn every_error_code_is_in_the_table_and_in_the_documentation() {
    let kernel = fs::read_to_string(root().join("kernel/src/error.rs")).unwrap();
    let codes = quoted_texts(&kernel, "wow.");
    assert!(codes.len() > 20, "{codes:?}");
    let mut wrong: Vec<_> = codes
        .into_iter()
        .filter(|code| !ERROR_TABLE.iter().any(|row| row.code == *code))
        .map(|code| format!("{code} is not in src/http/error.rs"))
        .collect();
    let documentation = fs::read_to_string(root().join("docs/error-codes.md")).unwrap();
    let documented: BTreeSet<_> = documentation
        .lines()
        .filter(|line| line.starts_with("| `wow."))
        .collect();
    let rows: BTreeSet<_> = ERROR_TABLE.iter().map(documentation_row).collect();
    let rows: BTreeSet<_> = rows.iter().map(String::as_str).collect();
    let missing = rows
        .difference(&documented)
        .map(|row| format!("missing in docs: {row}"));
    let outdated = documented
        .difference(&rows)
        .map(|row| format!("outdated in docs: {row}"));
    wrong.extend(missing.chain(outdated));
    demand_none(
        &wrong,
        "clients act on codes: each has a row in code and in docs/error-codes.md",
    );
}

fn documentation_row(row: &ErrorRow) -> String {
    let again = if row.retryable { "yes" } else { "no" };
    format!(
        "| `{}` | {} | {again} | {} |",
        row.code, row.status, row.advice
    )
}

#[test]
fn metric_names_stand_in_metrics_files_only() {
    let crates = ["wow_kernel", "wow_actors", "wow_macros", "wow_migrations"];
    let mut wrong = Vec::new();
    for file in shipped_sources() {
        let is_metrics = file.path.ends_with("/metrics.rs") || file.path.contains("/metrics/");
        if is_metrics {
            continue;
        }
        for (number, line) in file.production() {
            for name in quoted_texts(line, "wow_") {
                if !crates.iter().any(|own| name.starts_with(own)) {
                    wrong.push(format!("{}:{number}: {name}", file.path));
                }
            }
        }
    }
    demand_none(
        &wrong,
        "name metrics in a metrics.rs, so that they can be found and listed",
    );
}
