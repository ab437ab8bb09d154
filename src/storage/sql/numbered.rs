//! Statements whose text serves every database: their parameters are `$1`, `$2`, …, each of them
//! there once, in this order.

use sea_orm::{DbBackend, Statement, Value};

/// A statement with its parameters; MySQL knows no numbers for them.
pub(in crate::storage) fn numbered(
    backend: DbBackend,
    text: &str,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    let text = match backend {
        DbBackend::MySql => without_numbers(text),
        _ => text.to_owned(),
    };
    Statement::from_sql_and_values(backend, text, values)
}

/// So many parameters, from a number on, as a list.
pub(in crate::storage) fn list(first: usize, count: usize) -> String {
    let all: Vec<_> = (first..first + count)
        .map(|number| format!("${number}"))
        .collect();
    all.join(", ")
}

fn without_numbers(text: &str) -> String {
    let mut parts = text.split('$');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('?');
        plain.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_left_out_for_mysql() {
        let text = format!("a = $1 and b in ({}) limit $12", list(2, 10));
        let plain = "a = ? and b in (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) limit ?";
        assert_eq!(without_numbers(&text), plain);
    }
}
