//! Members: who holds which name, and for how long (R70).

use std::time::Duration;

use super::{TTL, join, live, member};
use crate::conformance::Stores;
use crate::conformance::texts::{LOOK_ALIKES, longest};
use crate::conformance::together::together;
use crate::ports::{LeaseStore, Member, MemberClaim, MemberState};

/// More than a whole lease.
const LONG: Duration = Duration::from_secs(601);

#[track_caller]
fn assert_held(claim: &MemberClaim) {
    match claim {
        MemberClaim::Held(left) => assert!(!left.is_zero() && *left <= TTL, "held for {left:?}"),
        MemberClaim::Claimed => panic!("the name of a live member was claimed"),
    }
}

async fn assert_lives(leases: &dyn LeaseStore, expected: &Member) {
    let name = expected.name.as_str();
    let found = live(leases, name).await;
    let found = found.unwrap_or_else(|| panic!("{name} is live, and isn't seen"));
    assert!(
        found.valid_for <= TTL,
        "{name} is valid for {:?}",
        found.valid_for
    );
    assert_eq!(
        Member {
            valid_for: expected.valid_for,
            ..found
        },
        *expected
    );
}

pub(super) async fn r70_at_first_there_is_nobody(stores: Stores) {
    let (members, partitions) = stores.leases().view().await.unwrap();
    assert_eq!(members, []);
    assert!(
        partitions.iter().all(|lease| lease.owner.is_none()),
        "owners: {partitions:?}"
    );
}

pub(super) async fn r70_a_free_name_is_claimed(stores: Stores) {
    let leases = stores.leases();
    let (a, b) = (member("a", 1), member("b", 1));
    join(&*leases, &[&a, &b]).await;
    assert_lives(&*leases, &a).await;
    assert_lives(&*leases, &b).await;
}

pub(super) async fn r70_a_member_is_seen_as_it_said(stores: Stores) {
    let leases = stores.leases();
    let odd = Member {
        address: "[2001:db8::1]:65535".into(),
        state: MemberState::Draining,
        protocol_min: 0,
        protocol_max: u16::MAX,
        ..member("wow-0.wow.default.svc:8080", 1)
    };
    join(&*leases, &[&odd]).await;
    assert_lives(&*leases, &odd).await;
}

pub(super) async fn r70_a_live_name_is_held_against_another_life(stores: Stores) {
    let leases = stores.leases();
    let (first, twin) = (member("a", 1), member("a", 2));
    join(&*leases, &[&first]).await;
    for _ in 0..3 {
        assert_held(&leases.claim(&twin, TTL).await.unwrap());
        stores.pass(TTL / 4).await;
    }
    assert_lives(&*leases, &first).await;
}

pub(super) async fn r70_a_claim_whose_answer_was_lost_is_made_again(stores: Stores) {
    let leases = stores.leases();
    let a = member("a", 1);
    join(&*leases, &[&a, &a]).await;
    assert_lives(&*leases, &a).await;
}

pub(super) async fn r70_an_expired_name_is_claimed_by_another_life(stores: Stores) {
    let leases = stores.leases();
    join(&*leases, &[&member("a", 1)]).await;
    stores.pass(LONG).await;
    assert_eq!(
        live(&*leases, "a").await,
        None,
        "a member whose lease has expired"
    );
    join(&*leases, &[&member("a", 2)]).await;
    assert_lives(&*leases, &member("a", 2)).await;
}

pub(super) async fn r70_a_lease_is_valid_for_less_as_time_passes(stores: Stores) {
    let leases = stores.leases();
    join(&*leases, &[&member("a", 1)]).await;
    let mut before = TTL + Duration::from_secs(1);
    for _ in 0..3 {
        let left = live(&*leases, "a")
            .await
            .expect("its lease is valid")
            .valid_for;
        assert!(left < before, "valid for {left:?} after {before:?}");
        before = left;
        stores.pass(TTL / 4).await;
    }
    assert!(
        before <= TTL / 2,
        "valid for {before:?} after half of {TTL:?}"
    );
}

pub(super) async fn r70_a_renewed_lease_lasts_anew(stores: Stores) {
    let leases = stores.leases();
    let a = member("a", 1);
    join(&*leases, &[&a]).await;
    for _ in 0..5 {
        stores.pass(TTL / 3 * 2).await;
        assert!(
            leases.renew(&a, TTL).await.unwrap(),
            "a live member's renewal"
        );
    }
    assert_lives(&*leases, &a).await;
    assert_held(&leases.claim(&member("a", 2), TTL).await.unwrap());
}

pub(super) async fn r70_an_expired_lease_is_not_renewed(stores: Stores) {
    let leases = stores.leases();
    let a = member("a", 1);
    join(&*leases, &[&a]).await;
    stores.pass(LONG).await;
    assert!(
        !leases.renew(&a, TTL).await.unwrap(),
        "a renewal after the lease has expired"
    );
    assert_eq!(
        live(&*leases, "a").await,
        None,
        "a lost renewal leaves the lease expired"
    );
}

pub(super) async fn r70_only_the_life_that_holds_a_name_renews_it(stores: Stores) {
    let leases = stores.leases();
    let (a, twin) = (member("a", 1), member("a", 2));
    assert!(
        !leases.renew(&a, TTL).await.unwrap(),
        "a renewal of what was never claimed"
    );
    join(&*leases, &[&a]).await;
    assert!(
        !leases.renew(&twin, TTL).await.unwrap(),
        "a renewal by another life"
    );
    assert_lives(&*leases, &a).await;
    assert!(
        leases.renew(&a, TTL).await.unwrap(),
        "a renewal by the life that holds it"
    );
}

pub(super) async fn r70_a_renewal_says_that_a_member_is_leaving(stores: Stores) {
    let leases = stores.leases();
    let a = member("a", 1);
    join(&*leases, &[&a]).await;
    let leaving = Member {
        state: MemberState::Draining,
        ..a
    };
    assert!(
        leases.renew(&leaving, TTL).await.unwrap(),
        "a live member's renewal"
    );
    assert_lives(&*leases, &leaving).await;
}

pub(super) async fn r70_a_name_that_was_left_is_free_at_once(stores: Stores) {
    let leases = stores.leases();
    let (a, next) = (member("a", 1), member("a", 2));
    join(&*leases, &[&a]).await;
    leases.leave(&a).await.unwrap();
    assert_eq!(live(&*leases, "a").await, None, "a member that has left");
    assert!(
        !leases.renew(&a, TTL).await.unwrap(),
        "a renewal after leaving"
    );
    join(&*leases, &[&next]).await;
    assert_lives(&*leases, &next).await;
    // To leave what was never joined is no error: a start that failed half way cleans up too.
    leases.leave(&member("unknown", 1)).await.unwrap();
}

pub(super) async fn r70_an_older_life_ends_nothing_of_a_newer_one(stores: Stores) {
    let leases = stores.leases();
    let (old, new) = (member("a", 1), member("a", 2));
    join(&*leases, &[&old]).await;
    stores.pass(LONG).await;
    join(&*leases, &[&new]).await;
    leases.leave(&old).await.unwrap();
    assert!(
        !leases.renew(&old, TTL).await.unwrap(),
        "a renewal by the older life"
    );
    assert_held(&leases.claim(&old, TTL).await.unwrap());
    assert_lives(&*leases, &new).await;
}

pub(super) async fn r70_of_many_lives_at_once_one_claims_the_name(stores: Stores) {
    let leases = stores.leases();
    let claims = together((0..16).map(|life| {
        let leases = leases.clone();
        async move { leases.claim(&member("a", life), TTL).await.unwrap() }
    }))
    .await;
    let claimed = claims
        .iter()
        .filter(|claim| **claim == MemberClaim::Claimed)
        .count();
    assert_eq!(claimed, 1, "lives that claimed the name, of {claims:?}");
    let life = claims
        .iter()
        .position(|claim| *claim == MemberClaim::Claimed);
    let winner = member("a", u32::try_from(life.unwrap()).unwrap());
    assert_lives(&*leases, &winner).await;
}

pub(super) async fn r70_names_that_look_alike_are_different(stores: Stores) {
    let leases = stores.leases();
    let longest = [longest('😀'), longest('😁')];
    let texts = LOOK_ALIKES
        .iter()
        .copied()
        .chain(longest.iter().map(String::as_str));
    let members: Vec<_> = texts.map(|text| member(text, 1)).collect();
    join(&*leases, &members.iter().collect::<Vec<_>>()).await;
    for member in &members {
        assert_lives(&*leases, member).await;
    }
}
