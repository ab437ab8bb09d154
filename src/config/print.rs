//! Writes a configuration out as TOML, secrets redacted, each value with where it comes from.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use super::fault::Origin;
use super::keys::{Origins, Visitor};
use super::setting::{Setting, quoted};

/// One key of the printed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedKey {
    /// The section.
    pub section: &'static str,
    /// The key in it.
    pub key: String,
    /// The value as TOML, secrets redacted.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Gathers every key with its value.
pub(super) struct Printer<'a> {
    origins: &'a Origins,
    section: &'static str,
    sections: Vec<&'static str>,
    keys: Vec<PrintedKey>,
}

impl<'a> Printer<'a> {
    pub(super) fn new(origins: &'a Origins) -> Self {
        Self {
            origins,
            section: "",
            sections: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// The keys, in the order of the sections.
    pub(super) fn into_keys(self) -> Vec<PrintedKey> {
        self.keys
    }

    /// The keys as a file.
    pub(super) fn into_toml(self) -> String {
        let mut toml = String::new();
        for section in &self.sections {
            let blank = if toml.is_empty() { "" } else { "\n" };
            writeln!(toml, "{blank}[{section}]").expect("writing to a string can't fail");
            for line in self.keys.iter().filter(|line| line.section == *section) {
                let PrintedKey {
                    key, value, origin, ..
                } = line;
                match origin {
                    Origin::Default => writeln!(toml, "{key} = {value}"),
                    set => writeln!(toml, "{key} = {value}  # {set}"),
                }
                .expect("writing to a string can't fail");
            }
        }
        toml
    }

    fn push(&mut self, key: &str, value: String) {
        let name = format!("{}.{key}", self.section);
        let origin = self.origins.get(&name).cloned().unwrap_or(Origin::Default);
        self.keys.push(PrintedKey {
            section: self.section,
            key: key.to_owned(),
            value,
            origin,
        });
    }
}

impl Visitor for Printer<'_> {
    fn enter(&mut self, section: &'static str) {
        self.section = section;
        self.sections.push(section);
    }

    fn key<S: Setting>(
        &mut self,
        key: &'static str,
        value: &mut S,
        _: Option<RangeInclusive<S::Bounded>>,
    ) {
        self.push(key, value.print());
    }

    fn rest<S: Setting>(&mut self, values: &mut BTreeMap<String, S>) {
        for (key, value) in values {
            let bare = key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
            let key = if bare { key.clone() } else { quoted(key) };
            self.push(&key, value.print());
        }
    }
}
