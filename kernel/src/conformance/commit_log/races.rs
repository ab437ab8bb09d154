//! Appends that meet: one wins, its rivals are told why, and nobody else notices.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::commit::Commit;
use crate::conformance::samples::{
    append_versions, commit, everything, everything_in, key, name_of, neighbours,
};
use crate::conformance::together::together;
use crate::conformance::{APPENDERS, Stores};
use crate::id::{Position, Version};
use crate::ports::{AppendError, AppendReceipt, CommitLog};

/// Appends every commit at once, and answers with what came of each.
async fn append_at_once(
    log: &Arc<dyn CommitLog>,
    commits: impl IntoIterator<Item = Commit>,
) -> Vec<Result<AppendReceipt, AppendError>> {
    together(commits.into_iter().map(|commit| {
        let log = log.clone();
        async move { log.append(Arc::new(commit)).await }
    }))
    .await
}

/// Exactly one succeeded, and every other one failed as said.
#[track_caller]
fn assert_one_winner(outcomes: &[Result<AppendReceipt, AppendError>], others: &AppendError) {
    let winners = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(winners, 1, "winners among {outcomes:?}");
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(error, others, "how a rival was refused");
    }
}

pub(super) async fn r44_of_many_with_one_request_id_one_wins(stores: Stores) {
    let log = stores.log();
    for round in 0..5 {
        // Each creates another aggregate, over many partitions (R12: two concurrent first tries).
        let request = format!("request-{round}");
        let outcomes = append_at_once(
            &log,
            (0..APPENDERS).map(|number| commit(&key(&format!("{round}-{number}")), 1, &request)),
        )
        .await;
        assert_one_winner(&outcomes, &AppendError::DuplicateRequest);
        for (number, outcome) in outcomes.iter().enumerate() {
            let found = everything(&*log, &key(&format!("{round}-{number}"))).await;
            assert_eq!(
                found.len(),
                usize::from(outcome.is_ok()),
                "commits of aggregate {number}"
            );
        }
    }
}

pub(super) async fn r44_of_many_with_one_version_one_wins(stores: Stores) {
    let log = stores.log();
    for version in 1..=5 {
        let outcomes = append_at_once(
            &log,
            (0..APPENDERS).map(|number| commit(&key("a"), version, &format!("{version}-{number}"))),
        )
        .await;
        assert_one_winner(&outcomes, &AppendError::VersionConflict);
        assert_eq!(everything(&*log, &key("a")).await.len() as Version, version);
    }
}

pub(super) async fn r44_a_conflict_never_fails_a_neighbour(stores: Stores) {
    let log = stores.log();
    let (partition, keys) = neighbours(16);
    append_versions(&*log, &keys[0], 3).await;
    append_versions(&*log, &keys[1], 1).await;

    // Late versions, repeated requests and good commits arrive in the same moment.
    let mut commits = Vec::new();
    for (number, key) in keys[2..].iter().enumerate() {
        commits.push(commit(
            &keys[0],
            1 + number as Version % 3,
            &format!("late-{number}"),
        ));
        commits.push(commit(key, 1, &format!("good-{number}")));
        let repeated = format!("{}-1", keys[1].id);
        commits.push(commit(&keys[1], 2, &repeated));
    }
    let outcomes = append_at_once(&log, commits.clone()).await;

    for (index, (commit, outcome)) in commits.iter().zip(&outcomes).enumerate() {
        let name = name_of(commit);
        match index % 3 {
            0 => assert_eq!(outcome, &Err(AppendError::VersionConflict), "{name}"),
            1 => assert!(outcome.is_ok(), "{name}: {outcome:?}"),
            _ => assert_eq!(outcome, &Err(AppendError::DuplicateRequest), "{name}"),
        }
    }
    let found = everything_in(&*log, partition).await;
    let positions: Vec<_> = found.iter().map(|commit| commit.position).collect();
    assert_eq!(positions, (1..=18).collect::<Vec<Position>>(), "positions");
}

pub(super) async fn a_caller_that_goes_away_leaves_nothing_half_done(stores: Stores) {
    let log = stores.log();
    let (partition, keys) = neighbours(APPENDERS / 2);
    for key in &keys {
        // Begun, and dropped at its first wait: the port says that nothing may be half done.
        let begun = log
            .append(Arc::new(commit(key, 1, key.id.as_str())))
            .now_or_never();
        if let Some(Err(error)) = begun {
            panic!("{key} has to be appended, but: {error:?}");
        }
    }
    for key in &keys {
        let again = commit(key, 1, key.id.as_str());
        match log.append(Arc::new(again)).await {
            Ok(_) | Err(AppendError::VersionConflict | AppendError::DuplicateRequest) => {}
            Err(error) => panic!("{key} is there or can be appended, but: {error:?}"),
        }
        let found = everything(&*log, key).await;
        assert_eq!(found.len(), 1, "commits of {key}");
    }
    let found = everything_in(&*log, partition).await;
    let positions: Vec<_> = found.iter().map(|commit| commit.position).collect();
    assert_eq!(
        positions,
        (1..=keys.len() as Position).collect::<Vec<_>>(),
        "positions"
    );
}
