//! Where configuration comes from: a file, the environment, the command line. Each is a layer
//! over the one before; the defaults below them all are in the sections' code.

use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Tag, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::fault::{Fault, Origin};

/// The file that is read where none is named, when it is there.
pub const DEFAULT_FILE: &str = "config.toml";

/// What the names of the environment's variables begin with.
pub const ENVIRONMENT_PREFIX: &str = "WOW__";

const FILE: &str = "file";
const ENVIRONMENT: &str = "environment";
const COMMAND_LINE: &str = "command line";

/// Everything a configuration is made of. It is passed in, so that tests own it.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The file that was named; it has to be there.
    pub file: Option<PathBuf>,
    /// The folder in which [`DEFAULT_FILE`] is looked for where no file is named; none looks
    /// nowhere.
    pub folder: Option<PathBuf>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Keys and values from the command line, as `("http.bind", "127.0.0.1:8080")`.
    pub overrides: Vec<(String, String)>,
}

impl Sources {
    /// The process's own: the file named or `./config.toml`, its environment, these overrides.
    pub fn of_process(file: Option<PathBuf>, overrides: Vec<(String, String)>) -> Self {
        Self {
            file,
            folder: Some(PathBuf::from(".")),
            environment: env::vars_os().collect(),
            overrides,
        }
    }

    /// A variable outside [`ENVIRONMENT_PREFIX`], where it is set and not empty.
    pub(super) fn variable(&self, name: &str, faults: &mut Vec<Fault>) -> Option<String> {
        let (_, value) = self.environment.iter().find(|(own, _)| own == name)?;
        match value.to_str() {
            Some(text) => (!text.is_empty()).then(|| text.to_owned()),
            None => {
                faults.push(Fault::NotUtf8 {
                    name: name.to_owned(),
                });
                None
            }
        }
    }

    /// All layers, merged; what can't be read is a fault, and the rest is still merged.
    pub(super) fn merge(&self, faults: &mut Vec<Fault>) -> Merged {
        let (path, file) = self.read_file(faults);
        let figment = Figment::new()
            .merge(Layer {
                name: FILE,
                values: file,
            })
            .merge(Layer {
                name: ENVIRONMENT,
                values: self.read_environment(faults),
            })
            .merge(Layer {
                name: COMMAND_LINE,
                values: self.read_overrides(faults),
            });
        Merged { figment, path }
    }

    fn read_file(&self, faults: &mut Vec<Fault>) -> (PathBuf, Dict) {
        let (path, is_named) = match (&self.file, &self.folder) {
            (Some(path), _) => (path.clone(), true),
            (None, Some(folder)) if folder.as_os_str() == "." => (DEFAULT_FILE.into(), false),
            (None, Some(folder)) => (folder.join(DEFAULT_FILE), false),
            (None, None) => return (PathBuf::new(), Dict::new()),
        };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => String::new(),
            Err(source) => {
                faults.push(Fault::FileUnreadable {
                    path: path.clone(),
                    source,
                });
                String::new()
            }
        };
        let values = Toml::from_str::<Dict>(&text).unwrap_or_else(|error| {
            let before = error
                .span()
                .map_or("", |span| text.get(..span.start).unwrap_or(""));
            // The parser's own message quotes the line, which may hold a password.
            faults.push(Fault::FileInvalid {
                path: path.clone(),
                line: before.matches('\n').count() + 1,
                reason: error.message().to_owned(),
            });
            Dict::new()
        });
        (path, values)
    }

    fn read_environment(&self, faults: &mut Vec<Fault>) -> Dict {
        let mut values = Dict::new();
        let mut known = HashSet::new();
        for (name, value) in &self.environment {
            let name = name.to_string_lossy();
            let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) else {
                continue;
            };
            match value.to_str() {
                Some(value) => {
                    let key = key_of_variable(key);
                    put(&mut values, &key, value);
                    // Two spellings of one name.
                    if !known.insert(key.clone()) {
                        let origin = Origin::Environment(name.into_owned());
                        faults.push(Fault::SetTwice { key, origin });
                    }
                }
                None => faults.push(Fault::NotUtf8 {
                    name: name.into_owned(),
                }),
            }
        }
        values
    }

    fn read_overrides(&self, faults: &mut Vec<Fault>) -> Dict {
        let mut values = Dict::new();
        let mut known = HashSet::new();
        for (key, value) in &self.overrides {
            if !known.insert(key) {
                faults.push(Fault::SetTwice {
                    key: key.clone(),
                    origin: Origin::CommandLine,
                });
            }
            put(&mut values, key, value);
        }
        values
    }
}

fn key_of_variable(name: &str) -> String {
    name.replace("__", ".").replace('_', "-").to_lowercase()
}

fn variable_of_key(key: &str) -> String {
    let name = key.replace('.', "__").replace('-', "_").to_uppercase();
    format!("{ENVIRONMENT_PREFIX}{name}")
}

/// Puts a value under `section.key`; a name without a section stands at the root.
fn put(values: &mut Dict, key: &str, value: &str) {
    let value = Value::from(value);
    match key.split_once('.') {
        None => {
            values.insert(key.to_owned(), value);
        }
        Some((section, key)) => {
            let section = values
                .entry(section.to_owned())
                .or_insert_with(|| Value::from(Dict::new()));
            match section {
                Value::Dict(_, keys) => {
                    keys.insert(key.to_owned(), value);
                }
                // A root value of the section's name came first: whichever stands is a fault.
                other => *other = value,
            }
        }
    }
}

struct Layer {
    name: &'static str,
    values: Dict,
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

/// The merged layers.
pub(super) struct Merged {
    figment: Figment,
    path: PathBuf,
}

impl Merged {
    /// The sections.
    pub(super) fn sections(&self) -> Dict {
        match self.figment.find_value("") {
            Ok(Value::Dict(_, sections)) => sections,
            _ => Dict::new(),
        }
    }

    /// Where the value of a key comes from.
    pub(super) fn origin(&self, key: &str, tag: Tag) -> Origin {
        match self
            .figment
            .get_metadata(tag)
            .map(|metadata| &*metadata.name)
        {
            Some(FILE) => Origin::File(self.path.clone()),
            Some(ENVIRONMENT) => Origin::Environment(variable_of_key(key)),
            Some(COMMAND_LINE) => Origin::CommandLine,
            _ => Origin::Default,
        }
    }
}
