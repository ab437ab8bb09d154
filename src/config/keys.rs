//! Sections and their keys. A section names each key once, in its `visit`; reading and printing
//! are two visitors of it, so neither can forget a key.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use figment::value::{Dict, Value};

use super::fault::{Fault, Origin};
use super::setting::{Raw, Setting};
use super::source::Merged;

/// One section of the configuration.
pub(super) trait Section {
    /// Its name in the file.
    const NAME: &'static str;

    /// Shows every key to a visitor.
    fn visit(&mut self, keys: &mut impl Visitor);
}

/// Something that is done to every key.
pub(super) trait Visitor {
    /// A section begins.
    fn enter(&mut self, section: &'static str);

    /// A key, with the range of its value.
    fn key<S: Setting>(
        &mut self,
        key: &'static str,
        value: &mut S,
        range: Option<RangeInclusive<S::Bounded>>,
    );

    /// All further keys, whatever their names.
    fn rest<S: Setting>(&mut self, values: &mut BTreeMap<String, S>);

    /// A key whose type says all about it.
    fn any<S: Setting>(&mut self, key: &'static str, value: &mut S) {
        self.key(key, value, None);
    }

    /// A key with a range.
    fn within<S: Setting>(
        &mut self,
        key: &'static str,
        value: &mut S,
        range: RangeInclusive<S::Bounded>,
    ) {
        self.key(key, value, Some(range));
    }
}

/// Where the value of each key that is set comes from.
pub(super) type Origins = BTreeMap<String, Origin>;

/// Reads the sources into the sections, and gathers what is wrong.
pub(super) struct Reader<'a> {
    merged: &'a Merged,
    sections: Dict,
    current: (&'static str, Dict),
    known: Vec<String>,
    unknown: Vec<(String, Origin)>,
    origins: Origins,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(merged: &'a Merged) -> Self {
        Self {
            merged,
            sections: merged.sections(),
            current: ("", Dict::new()),
            known: Vec::new(),
            unknown: Vec::new(),
            origins: Origins::new(),
            faults: Vec::new(),
        }
    }

    /// Ends the reading: what no section has taken is unknown.
    pub(super) fn finish(mut self, faults: &mut Vec<Fault>) -> Origins {
        self.leave();
        for (section, value) in std::mem::take(&mut self.sections) {
            self.unknown_below(&section, &value);
        }
        faults.append(&mut self.faults);
        for (key, origin) in std::mem::take(&mut self.unknown) {
            let advice = self.advice(&key);
            faults.push(Fault::UnknownKey {
                key,
                origin,
                advice,
            });
        }
        self.origins
    }

    fn leave(&mut self) {
        let (section, left) = std::mem::take(&mut self.current);
        for (key, value) in left {
            self.unknown_below(&format!("{section}.{key}"), &value);
        }
    }

    fn unknown_below(&mut self, key: &str, value: &Value) {
        match value {
            Value::Dict(_, below) if !below.is_empty() => {
                for (name, value) in below {
                    self.unknown_below(&format!("{key}.{name}"), value);
                }
            }
            _ => {
                let origin = self.merged.origin(key, value.tag());
                self.unknown.push((key.to_owned(), origin));
            }
        }
    }

    fn advice(&self, key: &str) -> String {
        let nearest = self
            .known
            .iter()
            .map(|known| (strsim::normalized_damerau_levenshtein(known, key), known))
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        match nearest {
            Some((likeness, known)) if likeness > 0.7 => format!("did you mean {known}?"),
            _ => "wow config print lists all keys".to_owned(),
        }
    }

    fn read<S: Setting>(
        &mut self,
        key: String,
        value: &Value,
        range: Option<&RangeInclusive<S::Bounded>>,
    ) -> Option<S> {
        let origin = self.merged.origin(&key, value.tag());
        let raw = Raw::of(value);
        let Some(read) = S::parse(raw) else {
            let found = if S::is_secret() {
                "not one (redacted)".to_owned()
            } else {
                show(raw)
            };
            self.faults.push(Fault::Unreadable {
                key,
                found,
                origin,
                expected: S::expected(),
            });
            return None;
        };
        if let (Some(range), Some(bounded)) = (range, read.bounded())
            && !range.contains(bounded)
        {
            self.faults.push(Fault::OutOfRange {
                key,
                found: bounded.print(),
                origin,
                low: range.start().print(),
                high: range.end().print(),
            });
            return None;
        }
        self.origins.insert(key, origin);
        Some(read)
    }
}

fn show(raw: Raw<'_>) -> String {
    match raw {
        Raw::Text(text) => super::setting::quoted(text),
        Raw::Integer(number) => number.to_string(),
        Raw::Bool(truth) => truth.to_string(),
        Raw::Other => "a table, a list or a fraction".to_owned(),
    }
}

impl Visitor for Reader<'_> {
    fn enter(&mut self, section: &'static str) {
        self.leave();
        let keys = match self.sections.remove(section) {
            Some(Value::Dict(_, keys)) => keys,
            Some(other) => {
                let origin = self.merged.origin(section, other.tag());
                self.faults.push(Fault::NotASection { section, origin });
                Dict::new()
            }
            None => Dict::new(),
        };
        self.current = (section, keys);
    }

    fn key<S: Setting>(
        &mut self,
        key: &'static str,
        value: &mut S,
        range: Option<RangeInclusive<S::Bounded>>,
    ) {
        let (section, keys) = &mut self.current;
        let name = format!("{section}.{key}");
        let found = keys.remove(key);
        self.known.push(name.clone());
        if let Some(found) = found
            && let Some(read) = self.read(name, &found, range.as_ref())
        {
            *value = read;
        }
    }

    fn rest<S: Setting>(&mut self, values: &mut BTreeMap<String, S>) {
        let section = self.current.0;
        for (key, value) in std::mem::take(&mut self.current.1) {
            if let Some(read) = self.read(format!("{section}.{key}"), &value, None) {
                values.insert(key, read);
            }
        }
    }
}
