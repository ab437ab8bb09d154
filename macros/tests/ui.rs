//! Every mistake in a derive is a compile error that says what to write instead.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test -p wow-macros --test ui`, and read
//! the difference.

#[test]
fn a_mistake_says_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
