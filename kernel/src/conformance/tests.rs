//! The suites catch what they are for: each flaw, and the case that finds it.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::flawed::{Flaw, Flawed};
use super::{Stores, cases};
use crate::memory::{ManualClock, MemoryStore};

/// Fresh stores: sound ones, and the same with a flaw, over one store.
fn sound_and_flawed(flaw: Flaw) -> (Stores, Stores) {
    let clock = ManualClock::new();
    let inner = MemoryStore::new(Arc::new(clock.clone()));
    let sound = Stores::of(Arc::new(inner.clone())).with_time(move |time| clock.advance(time));
    (sound, Stores::of(Arc::new(Flawed { inner, flaw })))
}

/// Stores whose log has the flaw.
fn flawed_log(flaw: Flaw) -> impl AsyncFn() -> Stores {
    async move || {
        let (sound, flawed) = sound_and_flawed(flaw);
        Stores {
            log: flawed.log,
            ..sound
        }
    }
}

/// Stores with the flaw over a sound log, so that a suite can't trip over anything else.
fn flawed(flaw: Flaw) -> impl AsyncFn() -> Stores {
    async move || {
        let (sound, flawed) = sound_and_flawed(flaw);
        Stores {
            log: sound.log,
            time: sound.time,
            ..flawed
        }
    }
}

async fn assert_caught(suite: impl Future<Output = ()>, case: &str) {
    let ended = AssertUnwindSafe(suite).catch_unwind().await;
    let panic: Box<dyn Any + Send> = ended.expect_err(case);
    let text = cases::message(&*panic);
    assert!(text.contains(case), "{case} didn't fail, but:\n{text}");
}

#[tokio::test]
async fn the_log_suite_catches_careless_logs() {
    for (flaw, case) in [
        (
            Flaw::IdsWithoutCase,
            "r44_aggregate_ids_that_look_alike_are_different",
        ),
        (
            Flaw::RequestIdsWithoutCase,
            "r44_request_ids_that_look_alike_are_different",
        ),
        (
            Flaw::RequestIdsOfAllTenants,
            "r44_a_request_id_belongs_to_its_tenant_and_type",
        ),
        (
            Flaw::OneErrorForBothKeys,
            "r44_a_taken_request_id_is_a_duplicate_request",
        ),
        (
            Flaw::NumbersThroughFloats,
            "numbers_come_back_byte_for_byte",
        ),
        (
            Flaw::HolesInPositions,
            "r80_positions_begin_at_1_in_each_partition",
        ),
        (
            Flaw::NewestPositionFirst,
            "r80_a_reader_never_sees_a_position_before_the_one_below",
        ),
        (Flaw::LimitsIgnored, "an_aggregate_is_read_in_pages"),
        (
            Flaw::BatchFailsTogether,
            "r44_a_conflict_never_fails_a_neighbour",
        ),
    ] {
        assert_caught(super::commit_log::suite(flawed_log(flaw)), case).await;
    }
}

#[tokio::test]
async fn the_read_suites_catch_careless_reads() {
    for (flaw, case) in [
        (
            Flaw::SnapshotLost,
            "r50_with_a_snapshot_what_follows_it_is_loaded",
        ),
        (
            Flaw::PageWithoutMore,
            "r50_a_long_tail_is_continued_by_reading_the_log",
        ),
        (
            Flaw::RequestsForgotten,
            "r41_the_requests_that_a_snapshot_does_not_hold_are_loaded",
        ),
        (
            Flaw::ProbeOfAnotherTenant,
            "r58_a_probe_finds_a_request_of_another_aggregate_of_its_type",
        ),
    ] {
        assert_caught(super::history::suite(flawed(flaw)), case).await;
    }
    let case = "r42_many_look_ups_at_once_each_get_their_own_answer";
    assert_caught(
        super::request_lookup::suite(flawed(Flaw::AnswersOfAnother)),
        case,
    )
    .await;
}

#[tokio::test]
async fn the_snapshot_suite_catches_careless_snapshots() {
    for (flaw, case) in [
        (
            Flaw::RevisionIgnored,
            "r84_an_equal_version_of_a_newer_state_revision_replaces",
        ),
        (
            Flaw::RequestsOverwritten,
            "r84_a_snapshot_without_requests_keeps_the_stored_ones",
        ),
        (
            Flaw::VersionsInAnyOrder,
            "r63_versions_answer_in_the_order_asked",
        ),
    ] {
        assert_caught(super::snapshot_store::suite(flawed(flaw)), case).await;
    }
}

#[tokio::test]
async fn the_checkpoint_suite_catches_careless_checkpoints() {
    for (flaw, case) in [
        (
            Flaw::EpochIgnored,
            "r81_a_runner_of_an_older_epoch_changes_nothing",
        ),
        (Flaw::GenerationIgnored, "r81_a_replay_sets_any_position"),
    ] {
        assert_caught(super::checkpoint_store::suite(flawed(flaw)), case).await;
    }
}

#[tokio::test]
async fn the_lease_suite_catches_careless_leases() {
    for (flaw, case) in [
        (
            Flaw::ExpiryIgnored,
            "r70_an_expired_name_is_claimed_by_another_life",
        ),
        (
            Flaw::StealsFromTheLive,
            "r72_a_partition_of_a_live_member_is_never_taken",
        ),
        (
            Flaw::OlderLifeStillOwns,
            "r72_a_partition_of_an_older_life_is_taken",
        ),
    ] {
        assert_caught(super::lease_store::suite(flawed(flaw)), case).await;
    }
}
