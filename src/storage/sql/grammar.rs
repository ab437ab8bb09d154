//! Where the databases' ways of saying the same part.

/// What a cell of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Cell {
    /// An id.
    Text,
    /// A version, a position, or a partition.
    Number,
}

/// The JSON parameter as a table `q`.
#[derive(Debug)]
pub(in crate::storage) struct Keys {
    /// What stands after `from`.
    pub(in crate::storage) table: String,
    /// The index of a key among the keys.
    pub(in crate::storage) index: &'static str,
    /// Its cells.
    pub(in crate::storage) cells: Vec<String>,
}

/// How a database says what the shared statements need.
pub(in crate::storage) trait Grammar {
    /// The table of keys; each key is an array of such cells.
    fn keys(&self, cells: &[Cell]) -> Keys;

    /// The join that goes from the keys to a table's index, and never the other way round.
    fn join(&self) -> &'static str;

    /// The rows of a table `c` for each row of another one; the index is the one to go through.
    fn joined(&self, outer: &str, table: &str, index: &str, on: &str) -> String {
        let join = self.join();
        let through = if index.is_empty() {
            String::new()
        } else {
            self.through(index)
        };
        format!("{outer} {join} {table} as c{through} on {on}")
    }

    /// That a column is a cell, before a range of the column that follows it in an index.
    fn fixes(&self, column: &str, cell: &str) -> String {
        format!("{column} = {cell}")
    }

    /// That the last column of an index is a cell.
    fn ends(&self, column: &str, cell: &str) -> String {
        format!("{column} = {cell}")
    }

    /// What makes a join use an index for a range of its last column.
    fn through(&self, _index: &str) -> String {
        String::new()
    }

    /// A column, as the type that rows are read by.
    fn column(&self, table: &str, column: &str) -> String {
        format!("{table}.{column}")
    }
}

/// A list of columns.
pub(super) fn columns(grammar: &impl Grammar, table: &str, columns: &[&str]) -> String {
    let all: Vec<_> = columns
        .iter()
        .map(|column| grammar.column(table, column))
        .collect();
    all.join(", ")
}
