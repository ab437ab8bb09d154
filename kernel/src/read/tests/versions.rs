//! Commits and traces: ranges, limits and sizes.

use std::ops::RangeInclusive;

use super::*;

fn versions_of(commits: &[Commit]) -> Vec<Version> {
    commits.iter().map(|commit| commit.version).collect()
}

#[test]
fn commits_are_those_of_the_range_as_far_as_it_was_reached() {
    let fixture = Fixture::counted(250);
    let read = |versions| done(fixture.reader.commits(&request("ledger"), versions));
    for (asked, answered) in [
        (1..=1, 1..=1),
        (2..=4, 2..=4),
        (1..=250, 1..=250),
        (99..=201, 99..=201),
        (250..=250, 250..=250),
        (249..=260, 249..=250),
        // What clients send for "to the end".
        (1..=2_147_483_647, 1..=250),
        (200..=Version::MAX, 200..=250),
    ] {
        let commits = read(asked.clone()).unwrap().commits;
        assert_eq!(
            versions_of(&commits),
            answered.collect::<Vec<_>>(),
            "{asked:?}"
        );
    }
    assert_eq!(
        read(251..=300).unwrap_err(),
        CommandError::VersionNotReached { version: 251 }
    );
    for empty in [0..=3, 0..=0, RangeInclusive::new(3, 2)] {
        assert_eq!(
            read(empty).unwrap_err().code(),
            "wow.command.parameter-invalid"
        );
    }
}

#[test]
fn a_commit_is_answered_with_its_events_byte_for_byte() {
    let fixture = Fixture::counted(1);
    let body = r#"{ "amount": 9007199254740993 }"#;
    let event = RecordedEvent {
        body: serde_json::value::RawValue::from_string(body.to_owned()).unwrap(),
        ..added(0)
    };
    fixture.append(&key("ledger"), 2, event);
    let read = done(fixture.reader.commits(&request("ledger"), 2..=2)).unwrap();
    assert_eq!(read.commits[0].events[0].body.get(), body);
    let state = done(fixture.reader.state(&request("ledger"))).unwrap();
    assert_eq!(sum(&state.state), 9_007_199_254_740_994);
}

#[test]
fn one_read_answers_with_a_bounded_number_of_commits() {
    let count = READ_COMMITS_MAX as u64;
    let fixture = Fixture::counted(count + 1);
    let read = |versions| done(fixture.reader.commits(&request("ledger"), versions));
    assert_eq!(read(1..=count).unwrap().commits.len(), READ_COMMITS_MAX);
    assert_eq!(
        read(1..=count + 1).unwrap_err().code(),
        "wow.command.parameter-invalid"
    );
    assert_eq!(
        read(2..=Version::MAX).unwrap().commits.len(),
        READ_COMMITS_MAX
    );
}

#[test]
fn a_trace_has_the_state_after_each_commit() {
    let fixture = Fixture::counted(250);
    fixture.save_snapshot(120, r#"{"sum":7260,"notes":""}"#, 2);
    let trace = |versions, limit| done(fixture.reader.trace(&request("ledger"), versions, limit));
    for (asked, limit, answered) in [
        (1..=Version::MAX, TRACE_COMMITS_DEFAULT, 1..=100),
        (1..=Version::MAX, 250, 1..=250),
        (1..=Version::MAX, READ_COMMITS_MAX, 1..=250),
        (100..=130, 100, 100..=130),
        (121..=121, 1, 121..=121),
        (200..=240, 5, 200..=204),
        (250..=300, 5, 250..=250),
    ] {
        let traced = trace(asked.clone(), limit).unwrap().commits;
        let versions: Vec<_> = traced.iter().map(|traced| traced.commit.version).collect();
        assert_eq!(versions, answered.collect::<Vec<_>>(), "{asked:?}");
        for traced in traced {
            let version = traced.commit.version;
            assert_eq!(sum(&traced.state), (version * (version + 1) / 2) as i64);
            assert_eq!(traced.facts.event_time, 1000 * version as i64);
        }
    }
    assert_eq!(
        trace(251..=300, 5).unwrap_err(),
        CommandError::VersionNotReached { version: 251 }
    );
    for limit in [0, READ_COMMITS_MAX + 1] {
        assert_eq!(
            trace(1..=2, limit).unwrap_err().code(),
            "wow.command.parameter-invalid"
        );
    }
}

#[test]
fn a_read_gathers_a_bounded_number_of_bytes() {
    let fixture = Fixture::new(AccessMode::Open);
    let text = "x".repeat(READ_BYTES_MAX / 4);
    for version in 1..=5 {
        fixture.append(
            &key("ledger"),
            version,
            recorded("noted", &json!({ "text": text })),
        );
    }
    let commits = |versions| done(fixture.reader.commits(&request("ledger"), versions));
    assert_eq!(commits(1..=3).unwrap().commits.len(), 3);
    assert_eq!(
        commits(1..=5).unwrap_err().code(),
        "wow.command.parameter-invalid"
    );
    // The first commit and its state come to half the bound, the second and its to more.
    let trace = |versions| done(fixture.reader.trace(&request("ledger"), versions, 10));
    assert_eq!(trace(1..=5).unwrap().commits.len(), 1);
    // What is asked for alone is answered, whatever its size.
    assert_eq!(trace(5..=5).unwrap().commits.len(), 1);
}
