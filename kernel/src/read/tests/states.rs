//! States: now, at versions, at times, from snapshots.

use async_trait::async_trait;

use super::*;
use crate::ports::StorageError;

#[test]
fn the_newest_state_comes_with_its_version_and_facts() {
    let fixture = Fixture::counted(3);
    let read = done(fixture.reader.state(&request("ledger"))).unwrap();
    assert_eq!((read.version, sum(&read.state)), (3, 6));
    assert_eq!(read.key, key("ledger"));
    assert_eq!(
        (read.facts.first_event_time, read.facts.event_time),
        (1000, 3000)
    );
    assert_eq!(
        (&*read.facts.first_operator, &*read.facts.operator),
        ("operator-1", "operator-3")
    );
}

#[test]
fn a_state_at_each_version_is_what_its_commits_made() {
    // More than a page, with a snapshot in the middle.
    let fixture = Fixture::counted(250);
    let state = json!({ "sum": 120 * 121 / 2, "notes": "" }).to_string();
    fixture.save_snapshot(120, &state, 2);
    for version in [1, 2, 100, 119, 120, 121, 249, 250] {
        let read = done(fixture.reader.state_at_version(&request("ledger"), version)).unwrap();
        let expected = (version * (version + 1) / 2) as i64;
        assert_eq!((read.version, sum(&read.state)), (version, expected));
        assert_eq!(read.facts.event_time, 1000 * version as i64);
    }
}

#[test]
fn a_snapshot_serves_versions_from_its_own_on() {
    let fixture = Fixture::counted(5);
    // The log can't lead to this sum: whoever answers with it has used the snapshot.
    fixture.save_snapshot(3, r#"{"sum":1000,"notes":""}"#, 2);
    for (version, expected) in [(2, 3), (3, 1000), (4, 1004), (5, 1009)] {
        let read = done(fixture.reader.state_at_version(&request("ledger"), version)).unwrap();
        assert_eq!(sum(&read.state), expected, "version {version}");
    }
}

#[test]
fn a_version_that_was_not_reached_is_told_so() {
    let fixture = Fixture::counted(3);
    for version in [0, 4, Version::MAX] {
        let error = done(fixture.reader.state_at_version(&request("ledger"), version)).unwrap_err();
        assert_eq!(error, CommandError::VersionNotReached { version });
    }
}

#[test]
fn a_state_at_a_time_ends_before_the_first_later_commit() {
    // More than a page.
    let fixture = Fixture::counted(250);
    let at = |time| done(fixture.reader.state_at_time(&request("ledger"), time));
    for (time, version) in [
        (1000, 1),
        (1999, 1),
        (2000, 2),
        (100_000, 100),
        (100_999, 100),
        (249_999, 249),
        (250_000, 250),
        (EpochMillis::MAX, 250),
    ] {
        let read = at(time).unwrap();
        let expected = (version * (version + 1) / 2) as i64;
        assert_eq!(
            (read.version, sum(&read.state)),
            (version, expected),
            "at {time}"
        );
    }
    for time in [999, 0, -1, EpochMillis::MIN] {
        assert_eq!(at(time).unwrap_err(), CommandError::NotFound, "at {time}");
    }
}

#[test]
fn a_snapshot_is_answered_as_it_was_written() {
    let fixture = Fixture::counted(3);
    let read = || done(fixture.reader.snapshot(&request("ledger")));
    assert_eq!(read().unwrap_err(), CommandError::NotFound);
    fixture.clock.advance(Duration::from_secs(7));
    let state = r#"{"sum": 3 , "notes":""}"#;
    fixture.save_snapshot(2, state, 2);
    let snapshot = read().unwrap();
    assert_eq!(
        (snapshot.state.version, snapshot.state.state.as_str()),
        (2, state)
    );
    assert_eq!(snapshot.snapshot_time, 10_000);
}

#[test]
fn r50_an_unreadable_snapshot_is_ignored_and_the_log_answers() {
    for (state, revision) in [
        ("{", 2),
        (r#"{"sum":"x"}"#, 2),
        (r#"{"sum":1000,"notes":""}"#, 1),
    ] {
        let fixture = Fixture::counted(5);
        fixture.save_snapshot(3, state, revision);
        let newest = done(fixture.reader.state(&request("ledger"))).unwrap();
        assert_eq!((newest.version, sum(&newest.state)), (5, 15));
        let snapshot = done(fixture.reader.snapshot(&request("ledger"))).unwrap();
        assert_eq!((snapshot.state.version, sum(&snapshot.state.state)), (3, 6));
        let trace = done(fixture.reader.trace(&request("ledger"), 5..=5, 1)).unwrap();
        assert_eq!(sum(&trace.commits[0].state), 15);
    }
}

#[test]
fn r50_an_event_that_cant_be_read_is_never_skipped() {
    let newer = RecordedEvent {
        revision: 9,
        ..added(1)
    };
    for event in [
        recorded("unheard_of", &json!({})),
        recorded("added", &json!({})),
        newer,
    ] {
        let fixture = Fixture::counted(2);
        fixture.append(&key("ledger"), 3, event);
        let reader = &fixture.reader;
        let at_time = done(reader.state_at_time(&request("ledger"), 1000));
        let traced = done(reader.trace(&request("ledger"), 1..=3, 10));
        for error in [
            done(reader.state(&request("ledger"))).unwrap_err(),
            at_time.unwrap_err(),
            traced.unwrap_err(),
        ] {
            assert_eq!(error, CommandError::EventUnreadable);
        }
    }
}

#[test]
fn r32_an_evolve_that_panics_fails_the_read_only() {
    let fixture = Fixture::counted(2);
    fixture.append(&key("ledger"), 3, recorded("exploded", &json!({})));
    fixture.append_for(&key("owned"), 1, added(1), ("ann", ""));
    let error = done(fixture.reader.state(&request("ledger"))).unwrap_err();
    assert_eq!(error, CommandError::Panicked);
    let mut owned = request("owned");
    owned.facts.owner.push((Source::Path, "ann".to_owned()));
    assert!(done(fixture.reader.state(&owned)).is_ok());
}

#[test]
fn what_is_deleted_does_not_exist_until_it_is_recovered() {
    let fixture = Fixture::counted(2);
    fixture.save_snapshot(2, r#"{"sum":3,"notes":""}"#, 2);
    fixture.clock.advance(Duration::from_secs(1));
    fixture.append(&key("ledger"), 3, recorded("aggregate_deleted", &json!({})));
    let reader = &fixture.reader;
    let read = request("ledger");
    for error in [
        done(reader.state(&read)).unwrap_err(),
        done(reader.state_at_version(&read, 1)).unwrap_err(),
        done(reader.state_at_time(&read, 1000)).unwrap_err(),
        done(reader.snapshot(&read)).unwrap_err(),
        done(reader.commits(&read, 1..=3)).unwrap_err(),
        done(reader.trace(&read, 1..=3, 10)).unwrap_err(),
    ] {
        assert_eq!(error, CommandError::NotFound);
    }
    fixture.clock.advance(Duration::from_secs(1));
    fixture.append(
        &key("ledger"),
        4,
        recorded("aggregate_recovered", &json!({})),
    );
    assert_eq!(done(reader.state(&read)).unwrap().version, 4);
    assert_eq!(done(reader.state_at_version(&read, 2)).unwrap().version, 2);
    // At its third version, and in its third second, it was gone.
    let then = [
        done(reader.state_at_version(&read, 3)).unwrap_err(),
        done(reader.state_at_time(&read, 3500)).unwrap_err(),
    ];
    assert_eq!(then, [CommandError::NotFound, CommandError::NotFound]);
}

struct Down;

#[async_trait]
impl SnapshotStore for Down {
    async fn save(&self, _snapshots: Vec<StoredSnapshot>) -> Result<(), StorageError> {
        Err(StorageError::Unavailable("the cable is out".into()))
    }

    async fn find(&self, _key: &AggregateKey) -> Result<Option<StoredSnapshot>, StorageError> {
        Err(StorageError::Unavailable("the cable is out".into()))
    }

    async fn versions(&self, _keys: &[AggregateKey]) -> Result<Vec<Version>, StorageError> {
        Err(StorageError::Unavailable("the cable is out".into()))
    }
}

#[test]
fn r75_storage_that_is_down_is_no_missing_snapshot() {
    let mut fixture = Fixture::counted(1);
    fixture.reader.snapshots = Arc::new(Down);
    let error = done(fixture.reader.snapshot(&request("ledger"))).unwrap_err();
    assert_eq!(error, CommandError::StorageUnavailable);
}
