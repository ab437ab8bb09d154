//! Which part of the root package may see which.

use std::collections::BTreeSet;

use crate::demand_none;
use crate::source::{SourceFile, holds_word, sources};

/// The parts of the root package that know nothing of each other: each module at its root but
/// the node, which joins them, and what only re-exports.
fn adapters(files: &[SourceFile]) -> BTreeSet<String> {
    let names = files.iter().filter_map(|file| {
        let below = file.path.strip_prefix("src/")?;
        let name = below.split('/').next().unwrap();
        Some(name.trim_end_matches(".rs").to_owned())
    });
    names
        .filter(|name| !["lib", "bin", "node", "prelude", "testkit"].contains(&&**name))
        .collect()
}

/// The modules at the crate's root that a file names, with the lines that do.
fn root_modules(file: &SourceFile) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    let depth = file.path.trim_end_matches("/mod.rs").matches('/').count();
    // From src/x.rs and src/x/mod.rs `super` is the root, from src/x/y.rs `super::super`.
    let from_file = "super::".repeat(depth);
    for prefix in ["crate::", "wow::", &from_file] {
        for (index, _) in file.text.match_indices(prefix) {
            let is_longer = file.text[..index].ends_with(|c: char| c.is_alphanumeric() || c == '_')
                || file.text[..index].ends_with("super::");
            if is_longer {
                continue;
            }
            let line = file.text[..index].matches('\n').count() + 1;
            let rest = &file.text[index + prefix.len()..];
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(group) => group_heads(group),
                None => vec![rest],
            };
            for name in names {
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                named.push((line, name[..end.unwrap_or(name.len())].to_owned()));
            }
        }
    }
    named
}

/// The first names of a `use` group's members: of `a::{b, c}, d}` these are `a` and `d`.
fn group_heads(group: &str) -> Vec<&str> {
    let mut heads = vec![group.trim_start()];
    let mut depth = 0;
    for (index, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.push(group[index + 1..].trim_start()),
            _ => {}
        }
    }
    heads
}

#[test]
fn adapters_never_import_each_other() {
    let files = sources();
    let adapters = adapters(&files);
    assert!(
        adapters.contains("config") && adapters.contains("access"),
        "{adapters:?}"
    );
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.is_in("src/")) {
        let own = file.path["src/".len()..]
            .split('/')
            .next()
            .unwrap()
            .trim_end_matches(".rs");
        if !adapters.contains(own) {
            continue;
        }
        for (line, name) in root_modules(file) {
            if name != own && (adapters.contains(&name) || name == "node") {
                wrong.push(format!("{}:{line}: {own} -> {name}", file.path));
            }
        }
    }
    demand_none(
        &wrong,
        "let src/node join these; each part takes a settings type of its own",
    );
}

#[test]
fn the_shipped_binary_and_the_examples_use_only_the_facade() {
    let inner = ["wow_kernel", "wow_actors", "wow_macros", "wow_migrations"];
    let mut wrong = Vec::new();
    for file in sources() {
        if file.is_in("src/bin/") || file.is_in("examples/") {
            let named = inner.iter().filter(|name| holds_word(&file.text, name));
            wrong.extend(named.map(|name| format!("{}: {name}", file.path)));
        }
    }
    demand_none(&wrong, "use what the crate `wow` exports, as users have to");
}

#[test]
fn the_modules_that_a_file_names_are_found() {
    let importing = SourceFile {
        path: "src/a/b.rs".into(),
        text: "use crate::{config::{x, http}, http};\nuse super::super::kafka;\nuse super::own;\n\
         let x = crate::storage::open();\nuse my_crate::cluster;\n"
            .into(),
    };
    let named: Vec<_> = root_modules(&importing)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(named, ["config", "http", "storage", "kafka"]);
}
