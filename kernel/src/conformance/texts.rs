//! Texts that a careless store confuses, cuts or refuses. All of them are ids by R3.

/// Texts no two of which are the same, though some collation, normalisation, cast or pattern
/// takes some of them for each other.
pub(super) const LOOK_ALIKES: &[&str] = &[
    // Case, in Latin and where case folding is odd.
    "id",
    "Id",
    "ID",
    "straße",
    "STRASSE",
    "strasse",
    "i",
    "I",
    "İ",
    "ı",
    "σ",
    "ς",
    "Σ",
    // Normalisation forms: composed, decomposed, ligature, Kelvin sign, full width, Hangul.
    "\u{e9}",
    "e\u{301}",
    "e",
    "ﬁ",
    "fi",
    "\u{212a}",
    "k",
    "K",
    "Ａ",
    "A",
    "a",
    "한",
    "\u{1112}\u{1161}\u{11ab}",
    // Blanks inside, and characters that take no room.
    "a b",
    "a  b",
    "a\u{a0}b",
    "a\u{3000}b",
    "a\u{200b}b",
    "ab",
    "\u{feff}ab",
    "ab\u{200d}",
    "a-b",
    "a\u{ad}b",
    // Patterns, quotes, escapes and comments of query languages.
    "%",
    "_",
    "a%",
    "a_",
    "aa",
    "'",
    "''",
    "\"",
    "`",
    "\\",
    "\\\\",
    "\\'",
    "$1",
    "?",
    ":id",
    "--",
    ";",
    "#",
    // What a cast makes a number, a null or a truth of.
    "0",
    "00",
    "0.0",
    "-0",
    "+0",
    "1",
    "01",
    "1.0",
    "1e0",
    "0x1",
    "null",
    "NULL",
    "true",
    "NaN",
    // Beyond the basic plane, alone and joined, with and without variation selector and skin.
    "😀",
    "😁",
    "👍",
    "👍🏽",
    "👩\u{200d}👧",
    "👩👧",
    "☺",
    "☺\u{fe0f}",
    "\u{10ffff}",
    "\u{e000}",
    "\u{fffd}",
    // Direction marks, and letters of other scripts that look like Latin ones.
    "\u{202e}abc",
    "abc",
    "\u{430}bc",
    "אבג",
    "日本",
    "日本\u{fe00}",
];

/// The longest id there is: 128 characters of four bytes each.
pub(super) fn longest(last: char) -> String {
    let mut text = "😀".repeat(crate::id::ID_CHARS_MAX - 1);
    text.push(last);
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::id::AggregateId;

    #[test]
    fn r3_every_text_is_an_id_and_no_two_are_the_same() {
        for text in LOOK_ALIKES {
            assert!(AggregateId::parse(text).is_ok(), "{text:?}");
        }
        assert!(AggregateId::parse(&longest('😀')).is_ok());
        assert_eq!(
            LOOK_ALIKES.iter().collect::<BTreeSet<_>>().len(),
            LOOK_ALIKES.len()
        );
    }
}
