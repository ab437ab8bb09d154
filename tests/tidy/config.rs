//! That `config.toml` and the code say the same.

use std::collections::BTreeSet;
use std::fs;

use wow::config::{Config, Origin, Sources};

use crate::source::quoted_texts;
use crate::{demand_none, root};

#[test]
fn config_toml_is_complete_and_equals_the_defaults_in_code() {
    let path = root().join("config.toml");
    let sources = Sources {
        file: Some(path.clone()),
        ..Sources::default()
    };
    let written = Config::load(&sources)
        .unwrap_or_else(|error| panic!("{error}"))
        .printed_keys();
    let defaults = Config::default().printed_keys();
    assert_eq!(written.len(), defaults.len());
    let mut wrong = Vec::new();
    for (written, default) in written.iter().zip(&defaults) {
        let key = format!("{}.{}", default.section, default.key);
        if written.origin != Origin::File(path.clone()) {
            wrong.push(format!("{key} is missing"));
        } else if written.value != default.value {
            wrong.push(format!(
                "{key} is {}, in code {}",
                written.value, default.value
            ));
        }
    }
    demand_none(&wrong, "config.toml and the defaults in src/config differ");
}

#[test]
fn every_key_of_config_toml_has_a_comment_of_one_line() {
    let text = fs::read_to_string(root().join("config.toml")).unwrap();
    let is_key = |line: &&str| !line.starts_with('#') && line.contains(" = ");
    let wrong: Vec<_> = text
        .lines()
        .filter(is_key)
        .filter(|line| {
            let comment = line.rsplit_once(" # ").map_or("", |(_, comment)| comment);
            comment.trim().is_empty() || line.chars().count() > 100
        })
        .map(ToOwned::to_owned)
        .collect();
    demand_none(&wrong, "say in one line what each key does");
}

#[test]
fn settings_named_in_other_places_exist() {
    let keys: BTreeSet<_> = Config::default()
        .printed_keys()
        .into_iter()
        .map(|key| format!("{}.{}", key.section, key.key))
        .collect();
    let error = fs::read_to_string(root().join("kernel/src/error.rs")).unwrap();
    let sections = ["runtime.", "wait.", "storage.", "http.", "log."];
    let named: Vec<_> = sections
        .iter()
        .flat_map(|section| quoted_texts(&error, section))
        .collect();
    assert!(named.len() >= 4, "{named:?}");
    let wrong: Vec<_> = named
        .into_iter()
        .filter(|key| !keys.contains(*key))
        .map(|key| format!("kernel/src/error.rs: {key}"))
        .collect();
    demand_none(&wrong, "these keys don't exist");
}
