//! Each fault does what it says, seen from both sides of it.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::fault::Draw;
use super::{Call, Fault, Faults, Faulty, Moment, Rates};
use crate::conformance::{self, Stores, samples};
use crate::memory::{ManualClock, MemoryStore};
use crate::ports::{AppendError, CommitLog, History, SnapshotStore, StorageError};

struct Setup {
    clock: ManualClock,
    faults: Faults,
    /// What is really stored.
    store: MemoryStore,
    /// The same through the faults.
    faulty: Arc<Faulty<MemoryStore>>,
}

fn setup() -> Setup {
    let clock = ManualClock::new();
    let faults = Faults::new(Arc::new(clock.clone()));
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let faulty = faults.wrap(Arc::new(store.clone()));
    Setup {
        clock,
        faults,
        store,
        faulty,
    }
}

async fn append(log: &impl CommitLog, version: u64) -> Result<u64, AppendError> {
    let commit = samples::commit(&samples::key("a"), version, &format!("request-{version}"));
    Ok(log.append(Arc::new(commit)).await?.position)
}

async fn newest(store: &MemoryStore) -> u64 {
    store
        .probe(&samples::key("a"), None)
        .await
        .unwrap()
        .newest_version
}

async fn fresh() -> Stores {
    let Setup { clock, faulty, .. } = setup();
    Stores::of(faulty).with_time(move |duration| clock.advance(duration))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_faults_nothing_changes() {
    conformance::commit_log::suite(fresh).await;
    conformance::history::suite(fresh).await;
    conformance::request_lookup::suite(fresh).await;
    conformance::snapshot_store::suite(fresh).await;
    conformance::checkpoint_store::suite(fresh).await;
    conformance::lease_store::suite(fresh).await;
}

#[tokio::test]
async fn a_refused_append_never_happens() {
    let Setup {
        faults,
        store,
        faulty,
        ..
    } = setup();
    faults.script(Call::Append, [Fault::Refuse, Fault::Busy]);
    assert!(matches!(
        append(&*faulty, 1).await,
        Err(AppendError::Unavailable(_))
    ));
    assert_eq!(append(&*faulty, 1).await, Err(AppendError::Busy));
    assert_eq!(newest(&store).await, 0);
    assert_eq!(append(&*faulty, 1).await, Ok(1), "the script has ended");
}

#[tokio::test]
async fn r54_of_an_unknown_outcome_the_caller_cannot_tell_whether_it_was_written() {
    let Setup {
        faults,
        store,
        faulty,
        ..
    } = setup();
    faults.script(
        Call::Append,
        [Fault::LoseCall, Fault::LoseAnswer, Fault::LoseAnswer],
    );

    let lost_call = append(&*faulty, 1).await;
    assert!(matches!(lost_call, Err(AppendError::OutcomeUnknown(_))));
    assert_eq!(newest(&store).await, 0);

    let lost_answer = append(&*faulty, 1).await;
    assert_eq!(lost_answer, lost_call, "the two look the same");
    assert_eq!(newest(&store).await, 1);

    // A conflict whose answer is lost is unknown too.
    assert_eq!(append(&*faulty, 1).await, lost_call);
    assert_eq!(append(&*faulty, 2).await, Ok(2));
}

#[tokio::test]
async fn an_answer_of_another_port_is_lost_as_unavailable() {
    let Setup {
        faults,
        store,
        faulty,
        ..
    } = setup();
    let key = samples::key("a");
    faults.script(Call::SaveSnapshots, [Fault::LoseCall, Fault::LoseAnswer]);
    for stored in [0, 3] {
        let saved = SnapshotStore::save(&*faulty, vec![samples::snapshot(&key, 3)]).await;
        assert!(
            matches!(saved, Err(StorageError::Unavailable(_))),
            "{saved:?}"
        );
        assert_eq!(
            store.versions(std::slice::from_ref(&key)).await.unwrap(),
            [stored]
        );
    }
}

#[tokio::test]
async fn a_storage_that_is_down_stays_so_until_it_is_healed() {
    let Setup { faults, faulty, .. } = setup();
    faults.always(&Call::ALL, Fault::Refuse);
    faults.script(Call::Append, [Fault::None]);
    assert_eq!(append(&*faulty, 1).await, Ok(1), "a script goes before");
    for _ in 0..3 {
        assert!(append(&*faulty, 2).await.is_err());
        assert!(faulty.heads(&[]).await.is_err());
    }
    faults.heal();
    assert_eq!(append(&*faulty, 2).await, Ok(2));
    assert!(faulty.heads(&[]).await.is_ok());
}

#[tokio::test]
async fn a_delay_ends_when_the_clock_says_so() {
    let Setup {
        clock,
        faults,
        store,
        faulty,
    } = setup();
    let second = Duration::from_secs(1);
    faults.script(
        Call::Append,
        [Fault::Delay(second), Fault::DelayAnswer(second)],
    );
    for (version, written_meanwhile) in [(1, 0), (2, 2)] {
        let slow = faulty.clone();
        let appending = tokio::spawn(async move { append(&*slow, version).await });
        clock.until_asleep(1).await;
        assert_eq!(newest(&store).await, written_meanwhile);
        clock.advance(second);
        assert_eq!(appending.await.unwrap(), Ok(version));
    }
}

#[tokio::test]
async fn a_gate_holds_one_call_before_or_after_its_work() {
    let Setup {
        faults,
        store,
        faulty,
        ..
    } = setup();
    for (version, moment, written_meanwhile) in [(1, Moment::Before, 0), (2, Moment::After, 2)] {
        let gate = faults.hold(Call::Append, moment);
        assert!(!gate.is_reached());
        let held = faulty.clone();
        let appending = tokio::spawn(async move { append(&*held, version).await });
        gate.reached().await;
        assert_eq!(newest(&store).await, written_meanwhile);
        assert!(!appending.is_finished());

        // Only that call is held.
        let late = append(&*faulty, written_meanwhile).await;
        assert!(late.is_err(), "a taken version, or none: {late:?}");

        gate.release();
        assert_eq!(appending.await.unwrap(), Ok(version));
    }
}

#[tokio::test]
async fn a_gate_that_is_dropped_holds_nobody() {
    let Setup { faults, faulty, .. } = setup();
    drop(faults.hold(Call::Append, Moment::Before));
    let gate = faults.hold(Call::Append, Moment::Before);
    assert_eq!(
        append(&*faulty, 1).now_or_never(),
        None,
        "the second gate holds"
    );
    assert_eq!(append(&*faulty, 1).await, Ok(1));
    drop(gate);
}

#[tokio::test]
async fn a_gate_that_is_released_early_lets_its_call_pass() {
    let Setup { faults, faulty, .. } = setup();
    let gate = faults.hold(Call::Append, Moment::After);
    gate.release();
    assert_eq!(append(&*faulty, 1).await, Ok(1));
    assert!(gate.is_reached());
}

#[tokio::test]
async fn a_call_that_is_given_up_at_a_gate_reached_it() {
    let Setup {
        faults,
        store,
        faulty,
        ..
    } = setup();
    let gate = faults.hold(Call::Append, Moment::Before);
    assert_eq!(append(&*faulty, 1).now_or_never(), None);
    gate.reached().await;
    assert_eq!(newest(&store).await, 0);
    assert_eq!(append(&*faulty, 1).await, Ok(1));
}

#[tokio::test]
async fn r42_reads_are_counted_whatever_becomes_of_them() {
    let Setup { faults, faulty, .. } = setup();
    let key = samples::key("a");
    append(&*faulty, 1).await.unwrap();
    assert_eq!((faults.calls(Call::Append), faults.reads()), (1, 0));

    faults.script(Call::LoadHistory, [Fault::Refuse]);
    History::load(&*faulty, &key).await.unwrap_err();
    History::load(&*faulty, &key).await.unwrap();
    faulty.probe(&key, None).await.unwrap();
    assert_eq!(
        (faults.calls(Call::LoadHistory), faults.calls(Call::Probe)),
        (2, 1)
    );
    assert_eq!(faults.reads(), 3);
}

#[tokio::test]
async fn ports_that_are_trait_objects_are_wrapped_too() {
    let Setup { faults, store, .. } = setup();
    let log: Arc<dyn CommitLog> = Arc::new(store);
    let faulty: Arc<dyn CommitLog> = faults.wrap(log);
    faults.script(Call::Heads, [Fault::Refuse]);
    assert!(faulty.heads(&[]).await.is_err());
}

fn drawn(seed: u64, call: Call, rates: &Rates) -> Vec<Fault> {
    let draw = Draw::new(seed, call, rates.clone());
    (1..=10_000).map(|number| draw.fault(number)).collect()
}

#[test]
fn a_seed_decides_which_calls_fail() {
    let rates = Rates {
        refuse: 0.1,
        lose_answer: 0.2,
        delay: 0.3,
        ..Rates::NONE
    };
    let faults = drawn(7, Call::Append, &rates);
    assert_eq!(faults, drawn(7, Call::Append, &rates));
    assert_ne!(faults, drawn(8, Call::Append, &rates));
    assert_ne!(faults, drawn(7, Call::Probe, &rates));
}

#[test]
fn faults_are_as_frequent_as_their_rates() {
    let rates = Rates {
        refuse: 0.1,
        lose_answer: 0.2,
        delay: 0.3,
        ..Rates::NONE
    };
    let faults = drawn(7, Call::Append, &rates);
    let share = |is: fn(&Fault) -> bool| faults.iter().filter(|fault| is(fault)).count();
    for (found, expected) in [
        (share(|fault| *fault == Fault::Refuse), 1_000),
        (share(|fault| *fault == Fault::LoseAnswer), 2_000),
        (share(|fault| matches!(fault, Fault::Delay(_))), 3_000),
        (share(|fault| *fault == Fault::None), 4_000),
    ] {
        // The seed is fixed, so this is no matter of luck.
        assert!(found.abs_diff(expected) < 200, "{found} of {expected}");
    }
    assert!(
        drawn(7, Call::Append, &Rates::NONE)
            .iter()
            .all(|fault| *fault == Fault::None)
    );
}

#[tokio::test]
async fn under_random_faults_what_was_acknowledged_is_there_once() {
    let Setup {
        faults,
        store,
        faulty,
        ..
    } = setup();
    let rates = Rates {
        refuse: 0.2,
        busy: 0.1,
        lose_answer: 0.2,
        lose_call: 0.2,
        ..Rates::NONE
    };
    faults.at_random(42, &[Call::Append], &rates);
    for version in 1..=500 {
        // The same entry again until it is there, as R54 does.
        while let Err(error) = append(&*faulty, version).await {
            if matches!(
                error,
                AppendError::DuplicateRequest | AppendError::VersionConflict
            ) {
                break;
            }
        }
    }
    let found = store
        .read_aggregate(&samples::key("a"), 0, u64::MAX, usize::MAX)
        .await
        .unwrap();
    assert!((1..=500).eq(found.iter().map(|commit| commit.version)));
    assert!(faults.calls(Call::Append) > 500, "no fault was drawn");
}
