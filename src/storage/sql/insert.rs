//! Multi-row inserts with bound values.
//!
//! Batches have any size, and a text for each would never be prepared twice; so a batch is cut into
//! chunks of a few sizes whose statements stay prepared.

/// How many rows one statement writes; each batch is cut into these, largest first.
pub(in crate::storage) const CHUNKS: [usize; 5] = [256, 64, 16, 4, 1];

/// The text that inserts so many rows.
pub(in crate::storage) fn insert(table: &str, columns: &[&str], rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    format!(
        "insert into {table} ({}) values {}",
        columns.join(","),
        vec![row; rows].join(",")
    )
}

/// Cuts rows into chunks; each comes with the place of its size in [`CHUNKS`].
pub(in crate::storage) fn chunks<T>(mut rows: &[T]) -> impl Iterator<Item = (usize, &[T])> {
    let mut size = 0;
    std::iter::from_fn(move || {
        while let Some(rows_max) = CHUNKS.get(size) {
            if let Some((chunk, rest)) = rows.split_at_checked(*rows_max) {
                rows = rest;
                return Some((size, chunk));
            }
            size += 1;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_chunk_and_the_chunks_are_few() {
        for count in [0, 1, 3, 85, 255, 256, 600] {
            let rows: Vec<usize> = (0..count).collect();
            let cut: Vec<_> = chunks(&rows).collect();
            assert!(cut.iter().all(|(size, chunk)| CHUNKS[*size] == chunk.len()));
            let joined: Vec<usize> = cut.iter().flat_map(|(_, chunk)| chunk.to_vec()).collect();
            assert_eq!(joined, rows);
            assert!(
                cut.len() <= 2 + 3 * 4,
                "{count} rows in {} chunks",
                cut.len()
            );
        }
    }
}
