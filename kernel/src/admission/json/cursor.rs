//! Reads the tokens of JSON where they stand, and says what is wrong with those that are none.

use std::str;

/// What is wrong at a place of a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// The text ends where more has to come.
    #[error("the body ends too early")]
    EndsEarly,
    /// Something else stands here.
    #[error("expected {what} at byte {at}, found {found:?}")]
    Expected {
        what: &'static str,
        at: usize,
        found: char,
    },
    /// More than one value.
    #[error("more follows the JSON value, at byte {at}")]
    TrailingText { at: usize },
    /// Too many objects and arrays in each other.
    #[error("nested {levels} levels deep or more")]
    TooDeep { levels: usize },
    /// One key twice in one object.
    #[error("this key comes twice")]
    DoubledKey,
    /// A control character that should have been escaped.
    #[error("a control character in a string, at byte {at}")]
    ControlCharacter { at: usize },
    /// An escape that is none, or half of a pair.
    #[error("an escape in a string that is none, at byte {at}")]
    Escape { at: usize },
    /// Digits that are no number: `01`, `1.`, `-`.
    #[error("a malformed number, at byte {at}")]
    Number { at: usize },
    /// Numbers of other languages.
    #[error("NaN and infinities are no JSON, at byte {at}")]
    NotFinite { at: usize },
}

/// A place in a text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// The byte here.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over a byte, if it stands here.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_here = self.peek() == Some(byte);
        self.at += usize::from(is_here);
        is_here
    }

    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The fault of something else standing here.
    pub(super) fn expected(&self, what: &'static str) -> Fault {
        match self.text[self.at..].chars().next() {
            None => Fault::EndsEarly,
            Some(found) => Fault::Expected {
                what,
                at: self.at,
                found,
            },
        }
    }

    /// Reads a string that begins here and answers with it, quotes included.
    pub(super) fn read_string(&mut self) -> Result<&'a str, Fault> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Fault::EndsEarly),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at]);
                }
                Some(b'\\') => self.read_escape()?,
                Some(0..0x20) => return Err(Fault::ControlCharacter { at: self.at }),
                Some(_) => self.at += 1,
            }
        }
    }

    fn read_escape(&mut self) -> Result<(), Fault> {
        let at = self.at;
        self.at += 1;
        let is_sound = match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                true
            }
            // Characters beyond 16 bits come as a pair, and half of one is no text.
            Some(b'u') => match self.read_unit() {
                Some(0xD800..=0xDBFF) => {
                    self.take(b'\\')
                        && self.peek() == Some(b'u')
                        && matches!(self.read_unit(), Some(0xDC00..=0xDFFF))
                }
                Some(0xDC00..=0xDFFF) | None => false,
                Some(_) => true,
            },
            Some(_) | None => false,
        };
        match is_sound {
            true => Ok(()),
            false if self.is_at_end() => Err(Fault::EndsEarly),
            false => Err(Fault::Escape { at }),
        }
    }

    /// Reads `uXXXX`, up to where it stops being that.
    fn read_unit(&mut self) -> Option<u16> {
        self.at += 1;
        let start = self.at;
        while self.at < start + 4 && self.peek().is_some_and(|next| next.is_ascii_hexdigit()) {
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        if digits.len() == 4 {
            u16::from_str_radix(digits, 16).ok()
        } else {
            None
        }
    }

    /// Reads a number that begins here.
    pub(super) fn read_number(&mut self) -> Result<(), Fault> {
        let at = self.at;
        if self.text[at..].starts_with("-Infinity") {
            return Err(Fault::NotFinite { at });
        }
        self.take(b'-');
        let is_sound = (self.take(b'0') || self.skip_digits())
            && (!self.take(b'.') || self.skip_digits())
            && (!(self.take(b'e') || self.take(b'E')) || self.skip_exponent());
        // A digit here follows a leading zero.
        let ends_here = !self.peek().is_some_and(|next| next.is_ascii_digit());
        match is_sound && ends_here {
            true => Ok(()),
            false if self.is_at_end() => Err(Fault::EndsEarly),
            false => Err(Fault::Number { at }),
        }
    }

    fn skip_exponent(&mut self) -> bool {
        if !self.take(b'+') {
            self.take(b'-');
        }
        self.skip_digits()
    }

    fn skip_digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    /// Reads `true`, `false` or `null`, which is all that can still be a value here.
    pub(super) fn read_word(&mut self) -> Result<(), Fault> {
        let words = ["true", "false", "null"];
        let rest = &self.text[self.at..];
        if let Some(word) = words.into_iter().find(|word| rest.starts_with(word)) {
            self.at += word.len();
            Ok(())
        } else if rest.starts_with("NaN") || rest.starts_with("Infinity") {
            Err(Fault::NotFinite { at: self.at })
        } else if words.into_iter().any(|word| word.starts_with(rest)) {
            Err(Fault::EndsEarly)
        } else {
            Err(self.expected("a value"))
        }
    }
}
