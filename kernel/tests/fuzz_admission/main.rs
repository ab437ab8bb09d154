//! Stands in CI for the fuzz target of `kernel/fuzz`: the same check, on inputs that a generator
//! makes of JSON by breaking it. `WOW_FUZZ_CASES` says how many (4096 unless set); whatever their
//! number, no more are begun after 50 seconds.

mod target;

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

/// How long cases are begun for.
const BUDGET: Duration = Duration::from_secs(50);

/// Bodies worth breaking: each is near something that is refused.
const SEEDS: [&str; 14] = [
    r#"{"value":{"a":1,"b":{},"a":2}}"#,
    r#"{"value":[0,{"ab":1,"a\u0062":2}]}"#,
    r#"{"value":{"a":[1,2.50,-0,1e400,"é\ud83d\ude00"],"b":{"a":null}}}"#,
    r#"{"value":123456789012345678901234567890.10}"#,
    r#"{"value":[[[[[[]]]]]],"value":true}"#,
    r#"{"whole":-9223372036854775808,"natural":18446744073709551615}"#,
    r#"{"whole":9223372036854775807,"natural":0}"#,
    r#"[1,2]"#,
    r#"{"label":"x","nested":[{"fields":{"text":"t","flag":true}},"plain",null]}"#,
    r#"{"nested":[{"pair":[255,"x"]}],"ratio":1e-7}"#,
    r#"{"ratio":NaN}"#,
    "",
    "{}",
    " \t\r\n{ \"\\u0076alue\" : 0 } ",
];

/// What is put into a body to break it.
const PIECES: [&str; 20] = [
    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "0", "-", "e", ".", "NaN", "null",
    "\"a\":1,", "\u{0}", "\u{feff}", "é",
];

fn broken_json() -> impl Strategy<Value = Vec<u8>> {
    let edit = prop_oneof![
        select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
        (1_usize..200).prop_map(|levels| "[".repeat(levels).into_bytes()),
        (1_usize..200).prop_map(|levels| r#"{"a":"#.repeat(levels).into_bytes()),
    ];
    let edits = proptest::collection::vec((any::<Index>(), 0_usize..3, edit), 0..6);
    (select(&SEEDS[..]), edits).prop_map(|(seed, edits)| {
        let mut body = seed.as_bytes().to_vec();
        for (place, removed, inserted) in edits {
            let start = place.index(body.len() + 1);
            let end = (start + removed).min(body.len());
            body.splice(start..end, inserted);
        }
        body
    })
}

fn input() -> impl Strategy<Value = Vec<u8>> {
    let variable = prop_oneof![
        select(vec!["", "x", "7", "a/b", "\"", "true"]).prop_map(|text| text.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    let body = prop_oneof![
        8 => broken_json(),
        1 => proptest::collection::vec(any::<u8>(), 0..6000),
    ];
    (any::<u8>(), variable, body).prop_map(|(picked, variable, body)| {
        let length = u8::try_from(variable.len()).expect("variables are short");
        [&[picked, length], &*variable, &*body].concat()
    })
}

#[test]
fn r5_admission_answers_whatever_comes_in() {
    let cases = std::env::var("WOW_FUZZ_CASES").ok().map_or(4096, |cases| {
        cases.parse().expect("WOW_FUZZ_CASES is a whole number")
    });
    #[expect(clippy::disallowed_methods, reason = "a bound on how long it runs")]
    let begun = Instant::now();
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&input(), |input| {
        if begun.elapsed() < BUDGET {
            target::check(&input);
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
