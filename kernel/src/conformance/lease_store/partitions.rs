//! Partition leases: who owns which partition (R72).

use std::time::Duration;

use super::{TTL, is_of, join, lease, member, take};
use crate::conformance::Stores;
use crate::conformance::together::together;
use crate::id::PartitionNo;
use crate::ports::{LeaseStore, Member, MemberState, PartitionLease};

/// More than a whole lease.
const LONG: Duration = Duration::from_secs(601);

/// Takes a partition that has to be free.
async fn taken(leases: &dyn LeaseStore, owner: &Member, partition: u32) -> PartitionLease {
    let before = lease(leases, partition).await;
    let taken = take(leases, owner, partition).await;
    let taken = taken.unwrap_or_else(|| panic!("{} can't take {before:?}", owner.name));
    assert!(
        is_of(&taken, owner),
        "taken by {}, answered {taken:?}",
        owner.name
    );
    assert!(
        taken.epoch > before.epoch,
        "epoch {} after {}",
        taken.epoch,
        before.epoch
    );
    assert_eq!(
        lease(leases, partition).await,
        taken,
        "the lease after it was taken"
    );
    taken
}

/// Tries to take a partition that is somebody's, at its epoch, whatever owner is said to be seen.
async fn not_taken(leases: &dyn LeaseStore, thief: &Member, partition: u32) {
    let stored = lease(leases, partition).await;
    for owner in [
        stored.owner.clone(),
        None,
        Some((thief.name.clone(), thief.incarnation)),
    ] {
        let seen = PartitionLease {
            owner,
            ..stored.clone()
        };
        let taken = leases
            .take(thief, std::slice::from_ref(&seen))
            .await
            .unwrap();
        assert_eq!(
            taken,
            [],
            "{} took {stored:?}, seen as {seen:?}",
            thief.name
        );
        assert_eq!(
            lease(leases, partition).await,
            stored,
            "the lease after the attempt"
        );
    }
}

pub(super) async fn r72_a_free_partition_is_taken(stores: Stores) {
    let leases = stores.leases();
    let a = member("a", 1);
    join(&*leases, &[&a]).await;
    for partition in [0, 7, 63] {
        taken(&*leases, &a, partition).await;
    }
}

pub(super) async fn r72_only_what_was_asked_for_is_taken(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    taken(&*leases, &a, 2).await;
    assert_eq!(
        leases.take(&b, &[]).await.unwrap(),
        [],
        "nothing was asked for"
    );

    let mut seen = Vec::new();
    for partition in 1..=3 {
        seen.push(lease(&*leases, partition).await);
    }
    let mut found = leases.take(&b, &seen).await.unwrap();
    found.sort_by_key(|lease| lease.partition);
    let partitions: Vec<_> = found.iter().map(|lease| lease.partition).collect();
    assert_eq!(
        partitions,
        [PartitionNo(1), PartitionNo(3)],
        "free partitions of three"
    );
    assert!(
        is_of(&lease(&*leases, 2).await, &a),
        "partition 2 is a live member's"
    );
    assert_eq!(
        lease(&*leases, 4).await.owner,
        None,
        "partition 4 wasn't asked for"
    );
}

pub(super) async fn r72_a_partition_of_a_live_member_is_never_taken(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    taken(&*leases, &a, 5).await;
    not_taken(&*leases, &b, 5).await;
    stores.pass(TTL / 2).await;
    not_taken(&*leases, &b, 5).await;
}

pub(super) async fn r72_a_partition_of_a_leaving_member_is_never_taken(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    taken(&*leases, &a, 5).await;
    let leaving = Member {
        state: MemberState::Draining,
        ..a
    };
    assert!(
        leases.renew(&leaving, TTL).await.unwrap(),
        "a live member's renewal"
    );
    not_taken(&*leases, &b, 5).await;
}

pub(super) async fn r72_a_partition_of_an_expired_member_is_taken(stores: Stores) {
    let leases = stores.leases();
    join(&*leases, &[&member("a", 1)]).await;
    taken(&*leases, &member("a", 1), 5).await;
    stores.pass(LONG).await;
    join(&*leases, &[&member("b", 1)]).await;
    taken(&*leases, &member("b", 1), 5).await;
}

pub(super) async fn r72_a_renewed_member_keeps_its_partitions(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    taken(&*leases, &a, 5).await;
    for _ in 0..3 {
        stores.pass(TTL / 3 * 2).await;
        assert!(
            leases.renew(&a, TTL).await.unwrap(),
            "a live member's renewal"
        );
        assert!(
            leases.renew(&b, TTL).await.unwrap(),
            "a live member's renewal"
        );
    }
    not_taken(&*leases, &b, 5).await;
}

pub(super) async fn r72_a_partition_of_a_member_that_left_is_taken(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    taken(&*leases, &a, 5).await;
    leases.leave(&a).await.unwrap();
    taken(&*leases, &b, 5).await;
}

pub(super) async fn r72_a_partition_of_an_older_life_is_taken(stores: Stores) {
    let leases = stores.leases();
    let (old, new) = (member("a", 1), member("a", 2));
    join(&*leases, &[&old]).await;
    taken(&*leases, &old, 5).await;
    taken(&*leases, &old, 6).await;
    stores.pass(LONG).await;
    // The name is live again, and what its older life owned is not the newer one's.
    join(&*leases, &[&new, &member("b", 1)]).await;
    taken(&*leases, &member("b", 1), 5).await;
    taken(&*leases, &new, 6).await;
}

pub(super) async fn r72_a_partition_that_has_changed_hands_since_is_not_taken(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    let seen_free = lease(&*leases, 5).await;
    taken(&*leases, &a, 5).await;
    leases.release(&a, &[PartitionNo(5)]).await.unwrap();

    // Free again, but not as it was seen: in between somebody owned it.
    assert_eq!(
        leases.take(&b, &[seen_free]).await.unwrap(),
        [],
        "an older epoch was seen"
    );
    let mut newer = lease(&*leases, 5).await;
    newer.epoch += 1;
    assert_eq!(
        leases.take(&b, &[newer]).await.unwrap(),
        [],
        "an epoch that never was"
    );
    taken(&*leases, &b, 5).await;
}

pub(super) async fn r72_every_taking_raises_the_epoch(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    for owner in [&a, &b, &a, &a] {
        // `taken` holds the epoch to be higher than before.
        taken(&*leases, owner, 5).await;
        leases.release(owner, &[PartitionNo(5)]).await.unwrap();
    }
}

pub(super) async fn r72_a_released_partition_is_taken_by_another(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    for partition in 5..=7 {
        taken(&*leases, &a, partition).await;
    }
    leases
        .release(&a, &[PartitionNo(5), PartitionNo(7)])
        .await
        .unwrap();
    leases.release(&a, &[]).await.unwrap();
    assert_eq!(
        lease(&*leases, 5).await.owner,
        None,
        "the owner of a released partition"
    );
    taken(&*leases, &b, 5).await;
    not_taken(&*leases, &b, 6).await;
    taken(&*leases, &b, 7).await;
}

pub(super) async fn r72_only_what_is_ours_is_released(stores: Stores) {
    let leases = stores.leases();
    let (a, b, old) = (member("a", 2), member("b", 1), member("a", 1));
    join(&*leases, &[&a, &b]).await;
    let stored = taken(&*leases, &a, 5).await;
    for other in [&b, &old] {
        leases
            .release(other, &[PartitionNo(5), PartitionNo(6)])
            .await
            .unwrap();
        assert_eq!(
            lease(&*leases, 5).await,
            stored,
            "after {} released it",
            other.name
        );
    }
    not_taken(&*leases, &b, 5).await;
}

pub(super) async fn r72_of_many_at_once_one_takes_a_partition(stores: Stores) {
    let leases = stores.leases();
    let members: Vec<_> = (0..8)
        .map(|number| member(&format!("node-{number}"), 1))
        .collect();
    join(&*leases, &members.iter().collect::<Vec<_>>()).await;

    // All want all, each in another order: a store that locks rows must not deadlock.
    let taken = together(members.iter().cloned().enumerate().map(|(number, owner)| {
        let leases = leases.clone();
        async move {
            let mut seen = Vec::new();
            for partition in 0..16 {
                seen.push(lease(&*leases, partition).await);
            }
            seen.rotate_left(2 * number);
            leases.take(&owner, &seen).await.unwrap()
        }
    }))
    .await;

    let mut partitions: Vec<_> = taken
        .iter()
        .flatten()
        .map(|lease| lease.partition)
        .collect();
    partitions.sort();
    assert_eq!(
        partitions,
        (0..16).map(PartitionNo).collect::<Vec<_>>(),
        "each taken once"
    );
    for (owner, taken) in members.iter().zip(&taken) {
        for answered in taken {
            assert!(
                is_of(answered, owner),
                "{} was answered {answered:?}",
                owner.name
            );
            assert_eq!(lease(&*leases, answered.partition.0).await, *answered);
        }
    }
}
