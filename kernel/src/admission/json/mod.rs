//! A first reading of a JSON body that keeps every byte: is it one JSON value, how deep does it
//! go, is a key doubled, and what do a few fields of the outermost object hold (R5).
//!
//! A decoder can't answer these. It builds values of a type and so passes over doubled keys in
//! what it ignores, and it turns numbers into machine numbers on its way. This scanner looks at
//! the text alone, in one pass without recursion, and hands out pieces of it as they were sent.

mod cursor;

use std::borrow::Cow;
use std::str;

use cursor::{Cursor, Fault};

use crate::registry::BodyFault;

/// How many levels of objects and arrays are too many; the decoder's own bound is the same.
const DEPTH_REFUSED: usize = 128;

/// One JSON value, known to be well formed.
#[derive(Debug)]
pub(super) struct Document<'a> {
    /// Its text, without the blanks around it.
    pub(super) text: &'a str,
    /// Those of the wanted fields that the outermost object has, as they were sent.
    fields: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Document<'a> {
    /// Whether it is an object.
    pub(super) fn is_object(&self) -> bool {
        self.text.starts_with('{')
    }

    /// A wanted field of the outermost object, as it was sent.
    pub(super) fn field(&self, name: &str) -> Option<&'a str> {
        self.fields
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }
}

/// Reads a body through and keeps the wanted fields of its outermost object.
///
/// # Errors
/// [`BodyFault`] for whatever is not exactly one JSON value of bounded depth without doubled
/// keys, with the path to the place.
pub(super) fn scan<'a>(
    bytes: &'a [u8],
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Document<'a>, BodyFault> {
    let error = match str::from_utf8(bytes) {
        Ok(text) => {
            let mut scanner = Scanner::new(text, is_wanted);
            return scanner.read_document().map_err(|fault| BodyFault {
                path: scanner.path(),
                reason: fault.to_string(),
            });
        }
        Err(error) => error,
    };
    // Read up to the bad byte, for the path to it; a fault before it is told instead.
    let at = error.valid_up_to();
    let sound = str::from_utf8(&bytes[..at]).expect("the bytes before the fault are UTF-8");
    let mut scanner = Scanner::new(sound, is_wanted);
    let reason = match scanner.read_document() {
        Ok(_) | Err(Fault::EndsEarly) => format!("invalid UTF-8 at byte {at}"),
        Err(fault) => fault.to_string(),
    };
    Err(BodyFault {
        path: scanner.path(),
        reason,
    })
}

/// Whether a text is exactly one JSON number, `true` or `false`.
pub(super) fn is_number_or_boolean(text: &str) -> bool {
    let mut cursor = Cursor { text, at: 0 };
    let outcome = match cursor.peek() {
        Some(b'-' | b'0'..=b'9') => cursor.read_number(),
        Some(b't' | b'f') => cursor.read_word(),
        _ => return false,
    };
    outcome.is_ok() && cursor.is_at_end()
}

/// The text that a JSON string stands for; none where the value is no string.
pub(super) fn unquoted(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(value).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// An open container.
enum Frame {
    /// An object, and where its keys begin in the list of keys.
    Object { first_key: usize },
    /// An array, and the index of its element.
    Array { index: usize },
}

struct Scanner<'a, 'w> {
    cursor: Cursor<'a>,
    /// The open containers, outermost first.
    frames: Vec<Frame>,
    /// The keys of all open objects, outermost first.
    keys: Vec<Cow<'a, str>>,
    is_wanted: &'w dyn Fn(&str) -> bool,
    /// The wanted field whose value is being read, and where that begins.
    wanted: Option<(Cow<'a, str>, usize)>,
    fields: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a, 'w> Scanner<'a, 'w> {
    fn new(text: &'a str, is_wanted: &'w dyn Fn(&str) -> bool) -> Self {
        Self {
            cursor: Cursor { text, at: 0 },
            frames: Vec::new(),
            keys: Vec::new(),
            is_wanted,
            wanted: None,
            fields: Vec::new(),
        }
    }

    fn read_document(&mut self) -> Result<Document<'a>, Fault> {
        self.cursor.skip_blanks();
        let start = self.cursor.at;
        loop {
            self.open_value()?;
            if !self.close_values()? {
                break;
            }
        }
        let end = self.cursor.at;
        self.cursor.skip_blanks();
        if !self.cursor.is_at_end() {
            return Err(Fault::TrailingText { at: self.cursor.at });
        }
        let text = &self.cursor.text[start..end];
        Ok(Document {
            text,
            fields: std::mem::take(&mut self.fields),
        })
    }

    /// Reads down to a value that holds no other.
    fn open_value(&mut self) -> Result<(), Fault> {
        loop {
            self.cursor.skip_blanks();
            match self.cursor.peek() {
                Some(b'{') => {
                    self.descend(Frame::Object {
                        first_key: self.keys.len(),
                    })?;
                    if self.cursor.take(b'}') {
                        self.frames.pop();
                        return Ok(());
                    }
                    self.read_key()?;
                }
                Some(b'[') => {
                    self.descend(Frame::Array { index: 0 })?;
                    if self.cursor.take(b']') {
                        self.frames.pop();
                        return Ok(());
                    }
                }
                Some(b'"') => return self.cursor.read_string().map(|_| ()),
                Some(b'-' | b'0'..=b'9') => return self.cursor.read_number(),
                _ => return self.cursor.read_word(),
            }
        }
    }

    /// Ends what a finished value ends; answers whether another value follows.
    fn close_values(&mut self) -> Result<bool, Fault> {
        loop {
            if self.frames.len() == 1
                && let Some((name, start)) = self.wanted.take()
            {
                self.fields
                    .push((name, &self.cursor.text[start..self.cursor.at]));
            }
            let Some(frame) = self.frames.last_mut() else {
                return Ok(false);
            };
            self.cursor.skip_blanks();
            match frame {
                Frame::Array { index } if self.cursor.take(b',') => {
                    *index += 1;
                    return Ok(true);
                }
                Frame::Array { .. } if self.cursor.take(b']') => {}
                Frame::Array { .. } => return Err(self.cursor.expected("',' or ']'")),
                Frame::Object { .. } if self.cursor.take(b',') => {
                    self.read_key()?;
                    return Ok(true);
                }
                Frame::Object { first_key } if self.cursor.take(b'}') => {
                    let first_key = *first_key;
                    self.end_object(first_key)?;
                }
                Frame::Object { .. } => return Err(self.cursor.expected("',' or '}'")),
            }
            self.frames.pop();
        }
    }

    fn descend(&mut self, frame: Frame) -> Result<(), Fault> {
        if self.frames.len() + 1 >= DEPTH_REFUSED {
            return Err(Fault::TooDeep {
                levels: DEPTH_REFUSED,
            });
        }
        self.frames.push(frame);
        self.cursor.at += 1;
        self.cursor.skip_blanks();
        Ok(())
    }

    /// Refuses doubled keys. Sorting finds them without a hash that an attacker could aim at.
    fn end_object(&mut self, first_key: usize) -> Result<(), Fault> {
        let keys = &mut self.keys[first_key..];
        keys.sort_unstable();
        if let Some(place) = keys.windows(2).position(|pair| pair[0] == pair[1]) {
            // The doubled key goes last, where the path takes it from.
            let last = keys.len() - 1;
            keys.swap(place, last);
            return Err(Fault::DoubledKey);
        }
        self.keys.truncate(first_key);
        Ok(())
    }

    fn read_key(&mut self) -> Result<(), Fault> {
        self.cursor.skip_blanks();
        if self.cursor.peek() != Some(b'"') {
            return Err(self.cursor.expected("a key in quotes"));
        }
        let at = self.cursor.at;
        let key = unquoted(self.cursor.read_string()?).ok_or(Fault::Escape { at })?;
        self.keys.push(key);
        self.cursor.skip_blanks();
        if !self.cursor.take(b':') {
            return Err(self.cursor.expected("':'"));
        }
        self.cursor.skip_blanks();
        let key = &self.keys[self.keys.len() - 1];
        if self.frames.len() == 1 && (self.is_wanted)(key) {
            self.wanted = Some((key.clone(), self.cursor.at));
        }
        Ok(())
    }

    /// The path to the place that is being read: `items[2].price`; `.` for the whole.
    fn path(&self) -> String {
        let mut path = String::new();
        for (depth, frame) in self.frames.iter().enumerate() {
            match frame {
                Frame::Array { index } => path.push_str(&format!("[{index}]")),
                Frame::Object { first_key } => {
                    // The newest key of an open object stands before those of the objects in it.
                    let inner = self.frames[depth + 1..]
                        .iter()
                        .find_map(|frame| match frame {
                            Frame::Object { first_key } => Some(*first_key),
                            Frame::Array { .. } => None,
                        });
                    let keys = &self.keys[*first_key..inner.unwrap_or(self.keys.len())];
                    if let Some(key) = keys.last() {
                        path.push_str(if path.is_empty() { "" } else { "." });
                        path.push_str(key);
                    }
                }
            }
        }
        if path.is_empty() { ".".into() } else { path }
    }
}
