//! Commits: as the log holds them, and with the states that they made.

use std::ops::RangeInclusive;

use super::{
    CommitsRead, PAGE, READ_BYTES_MAX, READ_COMMITS_MAX, ReadRequest, Reader, Seen, TraceRead,
    TracedCommit, contained,
};
use crate::commit::Commit;
use crate::error::CommandError;
use crate::execute::LoadError;
use crate::id::Version;

impl Reader {
    /// The commits of a range of versions. A range that goes beyond the newest version ends
    /// there.
    ///
    /// # Errors
    /// As [`Reader::state`]; [`CommandError::ParameterInvalid`] for an empty range, and for one
    /// of more than [`READ_COMMITS_MAX`] commits or [`READ_BYTES_MAX`] bytes;
    /// [`CommandError::VersionNotReached`] for one that begins after the newest version.
    pub async fn commits(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
    ) -> Result<CommitsRead, CommandError> {
        contained(async {
            let seen = self.see(request).await?;
            let (head, tail) = reached(&seen, &versions)?.into_inner();
            if tail - head >= READ_COMMITS_MAX as u64 {
                return Err(too_much(format!("more than {READ_COMMITS_MAX} commits")));
            }
            let mut commits = Vec::new();
            let (mut after, mut bytes) = (head - 1, 0);
            while after < tail {
                let page = self.page(&seen, after, tail).await?;
                check_contiguous(&seen, after, &page)?;
                bytes += page.iter().map(Commit::entry_bytes).sum::<usize>();
                if bytes > READ_BYTES_MAX {
                    return Err(too_much(format!("more than {READ_BYTES_MAX} bytes")));
                }
                after += page.len() as u64;
                commits.extend(page);
            }
            Ok(CommitsRead {
                aggregate: seen.aggregate,
                commits,
            })
        })
        .await
    }

    /// The commits of a range of versions with the state after each: at most `limit`, and fewer
    /// where they come to more than [`READ_BYTES_MAX`] bytes, but at least one.
    ///
    /// # Errors
    /// As [`Reader::state`]; [`CommandError::ParameterInvalid`] for an empty range and for a
    /// limit that is not within 1 to [`READ_COMMITS_MAX`];
    /// [`CommandError::VersionNotReached`] for a range that begins after the newest version.
    pub async fn trace(
        &self,
        request: &ReadRequest,
        versions: RangeInclusive<Version>,
        limit: usize,
    ) -> Result<TraceRead, CommandError> {
        contained(async {
            if !(1..=READ_COMMITS_MAX).contains(&limit) {
                return Err(CommandError::ParameterInvalid {
                    name: "limit".to_owned(),
                    reason: format!("it is not within 1 to {READ_COMMITS_MAX}"),
                });
            }
            let seen = self.see(request).await?;
            let (head, tail) = reached(&seen, &versions)?.into_inner();
            let tail = tail.min(head - 1 + limit as u64);
            let commits = self.traced(&seen, head, tail).await?;
            Ok(TraceRead {
                aggregate: seen.aggregate,
                commits,
            })
        })
        .await
    }

    async fn traced(
        &self,
        seen: &Seen,
        head: Version,
        tail: Version,
    ) -> Result<Vec<TracedCommit>, CommandError> {
        let mut loaded = match head {
            1 => seen.before_first()?,
            _ => self.load_at(seen, head - 1).await?,
        };
        let mut traced = Vec::new();
        let mut bytes = 0;
        while loaded.version < tail {
            let page = self.page(seen, loaded.version, tail).await?;
            check_contiguous(seen, loaded.version, &page)?;
            for commit in page {
                loaded = seen.apply(loaded, &commit)?;
                let state = seen.encode(&loaded)?;
                bytes += commit.entry_bytes() + state.len();
                if bytes > READ_BYTES_MAX && !traced.is_empty() {
                    return Ok(traced);
                }
                traced.push(TracedCommit {
                    commit,
                    facts: loaded.facts.clone(),
                    state,
                });
            }
        }
        Ok(traced)
    }
}

/// The part of a range that the aggregate has reached.
fn reached(
    seen: &Seen,
    versions: &RangeInclusive<Version>,
) -> Result<RangeInclusive<Version>, CommandError> {
    let (head, tail) = (*versions.start(), *versions.end());
    if head == 0 || tail < head {
        return Err(CommandError::ParameterInvalid {
            name: "versions".to_owned(),
            reason: "versions begin with 1, and the last is not before the first".to_owned(),
        });
    }
    if head > seen.newest.version {
        return Err(CommandError::VersionNotReached { version: head });
    }
    Ok(head..=tail.min(seen.newest.version))
}

/// A page holds the versions after a version, each of them (R50).
fn check_contiguous(seen: &Seen, after: Version, page: &[Commit]) -> Result<(), CommandError> {
    let expected = after + 1..=after + PAGE as u64;
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
    match expected
        .zip(page)
        .find(|(expected, commit)| commit.version != *expected)
    {
        None => Ok(()),
        Some((expected, commit)) => Err(gap(expected, commit.version)),
    }
}

fn too_much(what: String) -> CommandError {
    CommandError::ParameterInvalid {
        name: "versions".to_owned(),
        reason: format!("they are {what}; ask for fewer at once"),
    }
}
