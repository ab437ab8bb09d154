//! What deploys nodes sets keys that there are: a node refuses others only once it starts.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use wow::config::Config;

use crate::{demand_none, root};

/// What begins the name of a variable that sets a key.
const PREFIX: &str = "WOW__";

/// The variables of all keys.
fn variables() -> BTreeSet<String> {
    let keys = Config::default().printed_keys().into_iter();
    let variables = keys.map(|key| {
        let name = format!("{PREFIX}{}__{}", key.section, key.key.replace('-', "_"));
        name.to_uppercase()
    });
    variables.collect()
}

/// The variables that a text names.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).map(|(at, _)| {
        let name = &text[at..];
        let end = name.find(|c: char| !c.is_ascii_uppercase() && c != '_');
        &name[..end.unwrap_or(name.len())]
    })
}

fn deploying_files() -> Vec<PathBuf> {
    let mut files = vec![root().join("Dockerfile"), root().join("compose.yaml")];
    for folder in ["deploy", "deploy/kubernetes"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.is_file()));
    }
    files
}

#[test]
fn manifests_set_keys_that_there_are() {
    let known = variables();
    let mut wrong = Vec::new();
    let mut found = 0;
    for file in deploying_files() {
        let text = fs::read_to_string(&file).unwrap();
        for name in named(&text) {
            found += 1;
            if !known.contains(name) {
                wrong.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(found > 10, "the manifests name keys");
    demand_none(&wrong, "name keys of config.toml");
}
