//! Sources made of texts, for the tests of each kind.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod rules;
mod sources;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// Sources made of texts, with no file of the machine's.
struct Given {
    folder: tempfile::TempDir,
    sources: Sources,
}

impl Given {
    fn nothing() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            sources: Sources::default(),
        }
    }

    fn file(text: &str) -> Self {
        let mut given = Self::nothing();
        given.sources.file = Some(given.write("node.toml", text));
        given
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.push((name.into(), value.into()));
        self
    }

    fn set(mut self, key: &str, value: &str) -> Self {
        self.sources
            .overrides
            .push((key.to_owned(), value.to_owned()));
        self
    }

    fn load(&self) -> Config {
        Config::load(&self.sources).unwrap_or_else(|error| panic!("{error}"))
    }

    fn faults(&self) -> Vec<String> {
        let error = Config::load(&self.sources).unwrap_err();
        let folder = format!("{}/", self.folder.path().display());
        error
            .faults()
            .iter()
            .map(|fault| fault.to_string().replace(&folder, ""))
            .collect()
    }
}
