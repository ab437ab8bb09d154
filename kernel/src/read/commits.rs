//! Commits: as the log holds them, and with the states that they made.

use std::ops::RangeInclusive;

use super::{PAGE, READ_BYTES_MAX, ReadRequest, Reader, Seen, TracedCommit, contained};
use crate::commit::Commit;
use crate::error::CommandError;
use crate::execute::LoadError;
use crate::id::Version;

impl Reader {
    /// The oldest commits of a range of versions, at most `limit` of them, oldest first. A range
    /// that goes beyond the newest version ends there.
    ///
    /// # Errors
    /// As [`Reader::state`]; [`CommandError::ParameterInvalid`] for an empty range, and where
    /// several commits come to more than [`READ_BYTES_MAX`] bytes;
    /// [`CommandError::VersionNotReached`] for a range that begins after the newest version.
    pub async fn commits(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
        limit: usize,
    ) -> Result<Vec<Commit>, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            let (head, tail) = reached(&seen, &versions)?.into_inner();
            let tail = tail.min((head - 1).saturating_add(limit as u64));
            let mut commits = Vec::new();
            let mut size = Size::default();
            let mut after = head - 1;
            while after < tail {
                let page = self.page(&seen, after, tail).await?;
                check_contiguous(&seen, after, &page)?;
                for commit in &page {
                    size.add(commit.entry_bytes())?;
                }
                after += page.len() as u64;
                commits.extend(page);
            }
            Ok(commits)
        })
        .await
    }

    /// The newest commits of a range of versions, at most `limit` of them, oldest first, with
    /// the state after each.
    ///
    /// # Errors
    /// As [`Reader::commits`].
    pub async fn trace(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
        limit: usize,
    ) -> Result<Vec<TracedCommit>, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            let (head, tail) = reached(&seen, &versions)?.into_inner();
            let after = tail.saturating_sub(limit as u64).max(head - 1);
            let mut loaded = match after {
                0 => seen.before_first(),
                _ => self.load_at(&seen, after).await?,
            };
            let mut traced = Vec::new();
            let mut size = Size::default();
            while loaded.version < tail {
                let page = self.page(&seen, loaded.version, tail).await?;
                check_contiguous(&seen, loaded.version, &page)?;
                for commit in page {
                    loaded = seen.apply(loaded, &commit)?;
                    let state = seen.encode(&loaded)?;
                    size.add(commit.entry_bytes() + state.len())?;
                    let facts = loaded.facts.clone();
                    traced.push(TracedCommit {
                        commit,
                        facts,
                        state,
                    });
                }
            }
            Ok(traced)
        })
        .await
    }
}

/// The part of a range that the aggregate has reached.
fn reached(
    seen: &Seen,
    versions: &RangeInclusive<Version>,
) -> Result<RangeInclusive<Version>, CommandError> {
    let (head, tail) = (*versions.start(), *versions.end());
    if head == 0 || tail < head {
        return Err(refused(
            "versions begin with 1, and the last is not before the first".into(),
        ));
    }
    if head > seen.newest.version {
        return Err(CommandError::VersionNotReached { version: head });
    }
    Ok(head..=tail.min(seen.newest.version))
}

/// A page holds the versions after a version, each of them (R50).
fn check_contiguous(seen: &Seen, after: Version, page: &[Commit]) -> Result<(), CommandError> {
    let gap = |expected: Version, found: Version| {
        seen.failed(&LoadError::Gap {
            key: seen.key.to_string(),
            expected,
            found,
        })
    };
    if page.is_empty() {
        return Err(gap(after + 1, seen.newest.version));
    }
    let mut expected = (after + 1..=after + PAGE as u64).zip(page);
    match expected.find(|(expected, commit)| commit.version != *expected) {
        None => Ok(()),
        Some((expected, commit)) => Err(gap(expected, commit.version)),
    }
}

/// What a read has gathered so far.
#[derive(Default)]
struct Size {
    bytes: usize,
    entries: usize,
}

impl Size {
    /// One more entry. A single one is answered whatever its size.
    fn add(&mut self, bytes: usize) -> Result<(), CommandError> {
        self.bytes += bytes;
        self.entries += 1;
        if self.bytes > READ_BYTES_MAX && self.entries > 1 {
            let reason = format!("they are more than {READ_BYTES_MAX} bytes; ask for fewer");
            return Err(refused(reason));
        }
        Ok(())
    }
}

fn refused(reason: String) -> CommandError {
    CommandError::ParameterInvalid {
        name: "versions".to_owned(),
        reason,
    }
}
