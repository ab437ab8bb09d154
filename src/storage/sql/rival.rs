//! Whose keys are taken: what follows a conflict (R54).

use sea_orm::QueryResult;
use wow_kernel::ports::StorageError;

use super::super::batch::Entry;
use super::super::error::UniqueKey;
use super::super::rows::{self, Cells};

/// The keys of entries, as `Texts::taken` takes them.
///
/// # Errors
/// Only what JSON can't hold, which no id is.
pub(in crate::storage) fn rival_keys(entries: &[&Entry]) -> Result<String, StorageError> {
    let keys: Vec<_> = entries
        .iter()
        .map(|entry| {
            let commit = &entry.commit;
            let key = &commit.key;
            (
                &key.tenant,
                &key.aggregate_type,
                &key.id,
                commit.version,
                &commit.request_id,
            )
        })
        .collect();
    rows::keys(&keys)
}

/// Which key of each entry is taken, by the rows of `Texts::taken`; the request id counts before
/// the version.
///
/// # Errors
/// [`StorageError::Corrupt`].
pub(in crate::storage) fn rivals(
    rows: &[QueryResult],
    entries: usize,
) -> Result<Vec<Option<UniqueKey>>, StorageError> {
    let mut taken = vec![None; entries];
    for row in rows {
        let mut cells = Cells::new(row);
        let (index, request, version): (usize, bool, bool) =
            (cells.number()?, cells.get()?, cells.get()?);
        if let Some(key) = taken.get_mut(index) {
            *key = match (request, version) {
                (true, _) => Some(UniqueKey::Request),
                (false, true) => Some(UniqueKey::Version),
                (false, false) => None,
            };
        }
    }
    Ok(taken)
}
