//! The suite of [`CheckpointStore`].

use super::cases::run_cases;
use super::samples::all_partitions;
use super::texts::{LOOK_ALIKES, longest};
use super::together::together;
use super::{APPENDERS, Stores};
use crate::id::{PartitionNo, Position};
use crate::ports::{Checkpoint, CheckpointStore};

/// Holds checkpoints to R81: forward within a generation, anywhere with a higher one, and never
/// by a runner of an older epoch or generation. Needs `checkpoints`.
///
/// # Panics
/// Where a case fails.
pub async fn suite(fresh: impl AsyncFn() -> Stores) {
    run_cases!(
        "checkpoint_store",
        fresh,
        [
            r81_a_checkpoint_that_was_never_saved_is_absent,
            r81_a_checkpoint_comes_back_whole,
            r81_a_checkpoint_moves_forward_within_its_generation,
            r81_a_checkpoint_never_moves_back_within_its_generation,
            r81_a_runner_of_an_older_epoch_changes_nothing,
            r81_a_runner_of_an_older_generation_changes_nothing,
            r81_a_replay_sets_any_position,
            r81_checkpoints_of_other_subscriptions_and_partitions_are_their_own,
            r81_only_the_partitions_asked_for_are_loaded,
            r81_saves_at_once_leave_the_last_position,
        ]
    );
}

fn checkpoint(position: Position, epoch: u64, generation: u64) -> Checkpoint {
    let subscription = "order-summary".to_owned();
    Checkpoint {
        subscription,
        partition: PartitionNo(3),
        position,
        epoch,
        generation,
    }
}

async fn load(checkpoints: &dyn CheckpointStore, like: &Checkpoint) -> Option<Checkpoint> {
    let mut found = checkpoints
        .load(&like.subscription, &[like.partition])
        .await
        .unwrap();
    assert!(
        found.len() <= 1,
        "one partition has several checkpoints: {found:?}"
    );
    found.pop()
}

/// Saves checkpoints that have to be taken.
async fn saved(checkpoints: &dyn CheckpointStore, all: impl IntoIterator<Item = Checkpoint>) {
    for checkpoint in all {
        assert!(
            checkpoints.save(checkpoint.clone()).await.unwrap(),
            "refused: {checkpoint:?}"
        );
        assert_eq!(
            load(checkpoints, &checkpoint).await,
            Some(checkpoint),
            "after it was saved"
        );
    }
}

/// Saves checkpoints that have to be refused, each leaving what is stored as it was.
async fn refused(checkpoints: &dyn CheckpointStore, all: impl IntoIterator<Item = Checkpoint>) {
    for checkpoint in all {
        let stored = load(checkpoints, &checkpoint).await;
        let taken = checkpoints.save(checkpoint.clone()).await.unwrap();
        assert!(!taken, "{stored:?} was replaced by {checkpoint:?}");
        assert_eq!(
            load(checkpoints, &checkpoint).await,
            stored,
            "after {checkpoint:?} was refused"
        );
    }
}

async fn r81_a_checkpoint_that_was_never_saved_is_absent(stores: Stores) {
    let checkpoints = stores.checkpoints();
    assert_eq!(
        checkpoints
            .load("unknown", &all_partitions())
            .await
            .unwrap(),
        []
    );
    assert_eq!(checkpoints.load("unknown", &[]).await.unwrap(), []);
}

async fn r81_a_checkpoint_comes_back_whole(stores: Stores) {
    let checkpoints = stores.checkpoints();
    for (number, all) in (0..).zip([
        checkpoint(0, 0, 0),
        checkpoint(1, 2, 3),
        checkpoint(1 << 40, 1 << 41, 1 << 42),
    ]) {
        saved(
            &*checkpoints,
            [Checkpoint {
                partition: PartitionNo(number),
                ..all
            }],
        )
        .await;
    }
}

async fn r81_a_checkpoint_moves_forward_within_its_generation(stores: Stores) {
    let forward = [
        checkpoint(0, 1, 0),
        checkpoint(5, 1, 0),
        // The same again: a runner that didn't hear the answer asks once more.
        checkpoint(5, 1, 0),
        checkpoint(6, 1, 0),
        // A new owner takes over where the old one was, or further on.
        checkpoint(6, 2, 0),
        checkpoint(9, 4, 0),
    ];
    saved(&*stores.checkpoints(), forward).await;
}

async fn r81_a_checkpoint_never_moves_back_within_its_generation(stores: Stores) {
    let checkpoints = stores.checkpoints();
    saved(&*checkpoints, [checkpoint(10, 2, 1)]).await;
    refused(
        &*checkpoints,
        [
            checkpoint(9, 2, 1),
            checkpoint(0, 2, 1),
            checkpoint(9, 3, 1),
        ],
    )
    .await;
    saved(&*checkpoints, [checkpoint(11, 2, 1)]).await;
}

async fn r81_a_runner_of_an_older_epoch_changes_nothing(stores: Stores) {
    let checkpoints = stores.checkpoints();
    saved(&*checkpoints, [checkpoint(10, 5, 1)]).await;
    // Not even with a later position or a higher generation.
    let late = [
        checkpoint(10, 4, 1),
        checkpoint(11, 4, 1),
        checkpoint(99, 1, 1),
        checkpoint(0, 4, 2),
    ];
    refused(&*checkpoints, late).await;
}

async fn r81_a_runner_of_an_older_generation_changes_nothing(stores: Stores) {
    let checkpoints = stores.checkpoints();
    saved(&*checkpoints, [checkpoint(10, 5, 3)]).await;
    // Not even with a later position or a higher epoch.
    let late = [
        checkpoint(10, 5, 2),
        checkpoint(11, 5, 2),
        checkpoint(99, 6, 2),
        checkpoint(99, 6, 0),
    ];
    refused(&*checkpoints, late).await;
}

async fn r81_a_replay_sets_any_position(stores: Stores) {
    let replays = [
        checkpoint(10, 5, 1),
        checkpoint(0, 5, 2),
        checkpoint(7, 5, 2),
        checkpoint(3, 6, 3),
        checkpoint(30, 6, 9),
    ];
    saved(&*stores.checkpoints(), replays).await;
}

async fn r81_checkpoints_of_other_subscriptions_and_partitions_are_their_own(stores: Stores) {
    let checkpoints = stores.checkpoints();
    let longest = [longest('😀'), longest('😁')];
    let names = || {
        LOOK_ALIKES
            .iter()
            .copied()
            .chain(longest.iter().map(String::as_str))
    };
    let named = |position: Position, name: &str, partition| Checkpoint {
        subscription: name.to_owned(),
        partition: PartitionNo(partition),
        ..checkpoint(position, 1, 1)
    };
    // Each further back than the one before, so that one taken for another would be refused.
    for (number, name) in (0..).zip(names()) {
        let all = [named(1000 - number, name, 0), named(500 - number, name, 1)];
        saved(&*checkpoints, all).await;
    }
    for (number, name) in (0..).zip(names()) {
        for expected in [named(1000 - number, name, 0), named(500 - number, name, 1)] {
            assert_eq!(load(&*checkpoints, &expected).await, Some(expected));
        }
    }
}

async fn r81_only_the_partitions_asked_for_are_loaded(stores: Stores) {
    let checkpoints = stores.checkpoints();
    let at = |partition: u32| Checkpoint {
        partition: PartitionNo(partition),
        ..checkpoint(100 + Position::from(partition), 1, 1)
    };
    saved(&*checkpoints, (0..40).map(at)).await;
    let asked = [
        PartitionNo(7),
        PartitionNo(63),
        PartitionNo(0),
        PartitionNo(39),
    ];
    let mut found = checkpoints.load("order-summary", &asked).await.unwrap();
    found.sort_by_key(|checkpoint| checkpoint.partition);
    assert_eq!(found, [at(0), at(7), at(39)]);

    let found = checkpoints
        .load("order-summary", &all_partitions())
        .await
        .unwrap();
    assert_eq!(found.len(), 40, "checkpoints of all partitions");
}

async fn r81_saves_at_once_leave_the_last_position(stores: Stores) {
    let checkpoints = stores.checkpoints();
    let count = APPENDERS as Position;
    // Two epochs: whatever the order, nothing of the older one is left.
    let taken = together((1..=count).map(|number| {
        let checkpoints = checkpoints.clone();
        async move {
            let old = checkpoints.save(checkpoint(number, 1, 1)).await.unwrap();
            let new = checkpoints.save(checkpoint(number, 2, 1)).await.unwrap();
            (old, new)
        }
    }))
    .await;
    let last = load(&*checkpoints, &checkpoint(0, 0, 0)).await;
    assert_eq!(
        last,
        Some(checkpoint(count, 2, 1)),
        "the last position of the newer epoch"
    );
    assert!(
        taken.last().is_some_and(|(_, new)| *new),
        "the last position was refused"
    );
}
