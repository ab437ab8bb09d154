//! The suite of [`LeaseStore`].

mod members;
mod partitions;

use std::time::Duration;

use super::Stores;
use super::cases::run_cases;
use super::samples::uuid_of;
use crate::id::{NodeName, PartitionNo};
use crate::ports::{LeaseStore, Member, MemberClaim, MemberState, PartitionLease};

/// How long leases last here: far longer than a case takes, so that only the fixture's own passing
/// of time ends them.
const TTL: Duration = Duration::from_secs(600);

/// Holds leases to R70 and R72: one life of a name, one owner of a partition, by the store's own
/// clock. Needs `leases` and `time`.
///
/// # Panics
/// Where a case fails.
pub async fn suite(fresh: impl AsyncFn() -> Stores) {
    run_cases!(
        "lease_store",
        fresh,
        [
            members::r70_at_first_there_is_nobody,
            members::r70_a_free_name_is_claimed,
            members::r70_a_member_is_seen_as_it_said,
            members::r70_a_live_name_is_held_against_another_life,
            members::r70_a_claim_whose_answer_was_lost_is_made_again,
            members::r70_an_expired_name_is_claimed_by_another_life,
            members::r70_a_lease_is_valid_for_less_as_time_passes,
            members::r70_a_renewed_lease_lasts_anew,
            members::r70_an_expired_lease_is_not_renewed,
            members::r70_only_the_life_that_holds_a_name_renews_it,
            members::r70_a_renewal_says_that_a_member_is_leaving,
            members::r70_a_name_that_was_left_is_free_at_once,
            members::r70_an_older_life_ends_nothing_of_a_newer_one,
            members::r70_of_many_lives_at_once_one_claims_the_name,
            members::r70_names_that_look_alike_are_different,
            partitions::r72_a_free_partition_is_taken,
            partitions::r72_only_what_was_asked_for_is_taken,
            partitions::r72_a_partition_of_a_live_member_is_never_taken,
            partitions::r72_a_partition_of_a_leaving_member_is_never_taken,
            partitions::r72_a_partition_of_an_expired_member_is_taken,
            partitions::r72_a_renewed_member_keeps_its_partitions,
            partitions::r72_a_partition_of_a_member_that_left_is_taken,
            partitions::r72_a_partition_of_an_older_life_is_taken,
            partitions::r72_a_partition_that_has_changed_hands_since_is_not_taken,
            partitions::r72_every_taking_raises_the_epoch,
            partitions::r72_a_released_partition_is_taken_by_another,
            partitions::r72_only_what_is_ours_is_released,
            partitions::r72_of_many_at_once_one_takes_a_partition,
        ]
    );
}

/// A life of a node: an incarnation of its name.
fn member(name: &str, life: u32) -> Member {
    Member {
        name: NodeName::trusted(name),
        incarnation: uuid_of(&[name, &life.to_string()]),
        address: format!("{name}.internal:9090"),
        state: MemberState::Live,
        protocol_min: 1,
        protocol_max: 2,
        valid_for: Duration::ZERO,
    }
}

/// Claims names that have to be free.
async fn join(leases: &dyn LeaseStore, members: &[&Member]) {
    for member in members {
        let claim = leases.claim(member, TTL).await.unwrap();
        assert_eq!(claim, MemberClaim::Claimed, "the claim of {}", member.name);
    }
}

/// The member of a name, where the store knows a live one.
async fn live(leases: &dyn LeaseStore, name: &str) -> Option<Member> {
    let (members, _) = leases.view().await.unwrap();
    let mut named = members
        .into_iter()
        .filter(|member| member.name.as_str() == name);
    let found = named.next().filter(|member| !member.valid_for.is_zero());
    assert!(named.next().is_none(), "{name} is there twice");
    found
}

/// The lease of a partition; one that the store has never heard of is free at epoch 0.
async fn lease(leases: &dyn LeaseStore, partition: u32) -> PartitionLease {
    let partition = PartitionNo(partition);
    let (_, all) = leases.view().await.unwrap();
    let mut of_it = all.into_iter().filter(|lease| lease.partition == partition);
    let found = of_it.next().unwrap_or(PartitionLease {
        partition,
        owner: None,
        epoch: 0,
    });
    assert!(
        of_it.next().is_none(),
        "partition {partition} is there twice"
    );
    found
}

/// Takes a partition as it is seen now.
async fn take(leases: &dyn LeaseStore, owner: &Member, partition: u32) -> Option<PartitionLease> {
    let seen = lease(leases, partition).await;
    let mut taken = leases.take(owner, &[seen]).await.unwrap();
    assert!(taken.len() <= 1, "one partition was asked for: {taken:?}");
    taken.pop()
}

/// Whether a lease is a member's.
fn is_of(lease: &PartitionLease, owner: &Member) -> bool {
    lease.owner.as_ref() == Some(&(owner.name.clone(), owner.incarnation))
}
