//! Feeds admission's decoding whatever the fuzzer finds.

#![no_main]

#[path = "../../tests/fuzz_admission/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| target::check(input));
