//! Holds the shape of the repository: which package and module may see which, how large a file
//! may be, and what must stand in one place only. Rules that clippy can hold are clippy's.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use wow::config::{Config, Origin, Sources};
use wow::http::{ERROR_TABLE, ErrorRow};

/// Lines at which a file is told to be split, and at which the build fails.
const LINES_TOLD: usize = 400;
const LINES_MAX: usize = 600;

/// Which of our packages each may depend on, and which only its tests may.
const PACKAGE_ARROWS: [(&str, &[&str], &[&str]); 5] = [
    ("wow-kernel", &["wow-macros"], &[]),
    // The derives' own tests run what they derive.
    ("wow-macros", &[], &["wow-kernel"]),
    ("wow-actors", &["wow-kernel"], &["wow-kernel"]),
    ("wow-migrations", &[], &[]),
    (
        "wow",
        &["wow-kernel", "wow-macros", "wow-actors", "wow-migrations"],
        &["wow-kernel"],
    ),
];

/// What a package must never build, so that it stays what it is.
const FOREIGN_PACKAGES: [(&str, &[&str]); 3] = [
    (
        "wow-kernel",
        &[
            "actix",
            "actix-web",
            "actix-rt",
            "sea-orm",
            "sea-orm-migration",
            "sqlx",
            "rand",
            "chrono",
            "time",
            "reqwest",
            "rdkafka",
            "prometheus",
        ],
    ),
    (
        "wow-actors",
        &[
            "actix-web",
            "sea-orm",
            "sea-orm-migration",
            "sqlx",
            "rdkafka",
            "figment",
        ],
    ),
    ("wow-migrations", &["actix", "actix-web", "rdkafka"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Rust file of ours.
struct SourceFile {
    /// Its path below the root.
    path: String,
    text: String,
}

impl SourceFile {
    fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// Its lines of code outside tests, with their numbers: no comments, no `cfg(test)` items.
    fn production(&self) -> Vec<(usize, &str)> {
        let mut lines = Vec::new();
        let mut skipped_until: Option<String> = None;
        let mut all = self.text.lines().enumerate();
        while let Some((index, line)) = all.next() {
            let indent = &line[..line.len() - line.trim_start().len()];
            match &skipped_until {
                Some(end) if line == end => skipped_until = None,
                Some(_) => {}
                None if is_test_attribute(line) => {
                    // Formatted code ends an item with a brace at the indent it began with.
                    let item = all
                        .by_ref()
                        .find(|(_, next)| !next.trim_start().starts_with("#["));
                    if item.is_some_and(|(_, item)| item.trim_end().ends_with('{')) {
                        skipped_until = Some(format!("{indent}}}"));
                    }
                }
                None if line.trim_start().starts_with("//") => {}
                None => lines.push((index + 1, line)),
            }
        }
        lines
    }

    /// The modules that it declares for tests only, as path beginnings.
    fn test_modules(&self) -> Vec<String> {
        let path = Path::new(&self.path);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let folder = match stem {
            "mod" | "lib" | "main" => path.parent().unwrap().to_owned(),
            _ => path.with_extension(""),
        };
        let lines: Vec<_> = self.text.lines().collect();
        let mut modules = Vec::new();
        for (index, _) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| is_test_attribute(line))
        {
            let item = lines[index..]
                .iter()
                .find(|next| !next.trim_start().starts_with("#["));
            let name = item
                .and_then(|item| item.trim().strip_suffix(';'))
                .and_then(|item| {
                    let item = item
                        .trim_start_matches("pub(crate) ")
                        .trim_start_matches("pub ");
                    item.strip_prefix("mod ")
                });
            if let Some(name) = name {
                let module = folder.join(name).to_str().unwrap().to_owned();
                modules.extend([format!("{module}.rs"), format!("{module}/")]);
            }
        }
        modules
    }
}

fn is_test_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(any(test,")
}

/// Every Rust file of ours but this one, which names what it forbids.
fn sources() -> Vec<SourceFile> {
    let mut files = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") {
                let below = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.push(SourceFile {
                    path: below,
                    text: fs::read_to_string(&path).unwrap(),
                });
            }
        }
    }
    files.retain(|file| file.path != "tests/tidy.rs");
    assert!(files.len() > 50, "the sources were not found");
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// Those that are part of what ships.
fn shipped_sources() -> Vec<SourceFile> {
    let mut files = sources();
    let tests: Vec<_> = files.iter().flat_map(SourceFile::test_modules).collect();
    files.retain(|file| {
        let is_source = file.is_in("src/") || file.path.contains("/src/");
        is_source
            && !tests
                .iter()
                .any(|module| file.path.starts_with(module.as_str()))
    });
    files
}

/// Fails with all that is wrong, and with what to do about it.
fn demand_none(wrong: &[String], advice: &str) {
    assert!(wrong.is_empty(), "{advice}:\n  {}", wrong.join("\n  "));
}

/// Where a word stands in the shipped code of the files that are asked about.
fn occurrences(words: &[&str], asked: impl Fn(&SourceFile) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for file in shipped_sources().iter().filter(|file| asked(file)) {
        for (number, line) in file.production() {
            for word in words.iter().filter(|word| holds_word(line, word)) {
                found.push(format!("{}:{number}: {word}", file.path));
            }
        }
    }
    found
}

/// Whether a line holds a word that is not part of a longer name.
fn holds_word(line: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let begins_with_name = word.starts_with(is_name);
    let ends_with_name = word.ends_with(is_name);
    line.match_indices(word).any(|(index, _)| {
        let before = line[..index].chars().next_back().is_some_and(is_name);
        let after = line[index + word.len()..]
            .chars()
            .next()
            .is_some_and(is_name);
        !(begins_with_name && before) && !(ends_with_name && after)
    })
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The dependencies of each of our packages: name, whether for tests only, features.
fn dependencies() -> BTreeMap<String, Vec<(String, bool, Vec<String>)>> {
    let metadata = metadata();
    let mut packages = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let mut dependencies = Vec::new();
        for dependency in package["dependencies"].as_array().unwrap() {
            let features = dependency["features"].as_array().unwrap();
            dependencies.push((
                dependency["name"].as_str().unwrap().to_owned(),
                dependency["kind"].as_str() == Some("dev"),
                features
                    .iter()
                    .map(|feature| feature.as_str().unwrap().to_owned())
                    .collect(),
            ));
        }
        packages.insert(package["name"].as_str().unwrap().to_owned(), dependencies);
    }
    packages
}

#[test]
fn packages_see_only_what_the_architecture_lets_them() {
    let mut wrong = Vec::new();
    for (package, dependencies) in dependencies() {
        let Some((_, always, in_tests)) = PACKAGE_ARROWS.iter().find(|(name, ..)| *name == package)
        else {
            wrong.push(format!("{package} has no row in PACKAGE_ARROWS"));
            continue;
        };
        for (name, is_dev, _) in dependencies
            .iter()
            .filter(|(name, ..)| name.starts_with("wow"))
        {
            let allowed = if *is_dev { in_tests } else { always };
            if !allowed.contains(&name.as_str()) {
                let whose = if *is_dev { "'s tests" } else { "" };
                wrong.push(format!("{package}{whose} -> {name}"));
            }
        }
    }
    demand_none(&wrong, "arrows that docs/architecture.md does not draw");
}

#[test]
fn packages_build_nothing_that_is_foreign_to_them() {
    let packages = dependencies();
    let mut wrong = Vec::new();
    for (package, foreign) in FOREIGN_PACKAGES {
        for (name, ..) in packages[package]
            .iter()
            .filter(|(name, ..)| foreign.contains(&&**name))
        {
            wrong.push(format!("{package} -> {name}"));
        }
    }
    for (name, is_dev, features) in &packages["wow-kernel"] {
        if name == "tokio" && !is_dev && features.iter().any(|feature| feature != "sync") {
            wrong.push(format!(
                "wow-kernel -> tokio with {features:?}; only sync is allowed"
            ));
        }
    }
    demand_none(
        &wrong,
        "take these dependencies out; what they do comes in through a port",
    );
}

#[test]
fn the_kernel_has_no_clock_no_randomness_and_no_spawn_of_its_own() {
    let words = [
        "SystemTime::now",
        "Instant::now",
        "tokio::spawn",
        "tokio::time",
        "thread::spawn",
        "thread::sleep",
        "Uuid::now_v7",
        "Uuid::new_v4",
        "RandomState::new",
    ];
    let wrong = occurrences(&words, |file| file.is_in("kernel/src/"));
    demand_none(&wrong, "the kernel takes these through its ports");
}

#[test]
fn actors_are_implemented_in_one_package_only() {
    let wrong = occurrences(&["impl Actor for"], |file| !file.is_in("actors/"));
    demand_none(&wrong, "actors belong in actors/");
}

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
fn files_are_short_enough_to_be_read() {
    let mut wrong = Vec::new();
    for file in sources() {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!("{}: {lines} lines", file.path));
        } else if lines > LINES_TOLD {
            println!("{}: {lines} lines; consider splitting it", file.path);
        }
    }
    demand_none(&wrong, "split these files");
}

#[test]
fn nothing_unfinished_is_shipped() {
    let wrong = occurrences(&["todo!", "unimplemented!", "dbg!"], |_| true);
    demand_none(&wrong, "finish these");
    let marks = ["FIXME", "TODO", "XXX"];
    let marked = sources().into_iter().filter_map(|file| {
        let mark = marks.iter().find(|mark| holds_word(&file.text, mark))?;
        Some(format!("{}: {mark}", file.path))
    });
    demand_none(&marked.collect::<Vec<_>>(), "do it, or leave it");
}

#[test]
fn shipped_code_says_why_something_cannot_fail() {
    let wrong = occurrences(&[".unwrap()", ".unwrap_err()"], |file| {
        !file.is_in("macros/")
    });
    demand_none(
        &wrong,
        "handle the error, or `expect` with the reason why there is none",
    );
}

#[test]
fn names_say_what_is_inside() {
    let empty = [
        "util", "utils", "common", "helper", "helpers", "misc", "types", "manager",
    ];
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|file| {
            let parts = PathBuf::from(&file.path);
            parts
                .with_extension("")
                .iter()
                .any(|part| empty.contains(&part.to_str().unwrap()))
        })
        .map(|file| file.path)
        .collect();
    demand_none(&wrong, "name these for what is inside");
}

/// The texts in quotes of a file that begin so.
fn quoted_texts<'a>(text: &'a str, beginning: &str) -> BTreeSet<&'a str> {
    let quoted = format!("\"{beginning}");
    text.match_indices(&quoted)
        .filter_map(|(index, _)| text[index + 1..].split('"').next())
        .collect()
}

#[test]
fn every_error_code_is_in_the_table_and_in_the_documentation() {
    let kernel = fs::read_to_string(root().join("kernel/src/error.rs")).unwrap();
    let codes = quoted_texts(&kernel, "wow.");
    assert!(codes.len() > 20, "{codes:?}");
    let mut wrong: Vec<_> = codes
        .into_iter()
        .filter(|code| !ERROR_TABLE.iter().any(|row| row.code == *code))
        .map(|code| format!("{code} is not in src/http/error.rs"))
        .collect();
    let documentation = fs::read_to_string(root().join("docs/error-codes.md")).unwrap();
    let documented: BTreeSet<_> = documentation
        .lines()
        .filter(|line| line.starts_with("| `wow."))
        .collect();
    let rows: BTreeSet<_> = ERROR_TABLE.iter().map(documentation_row).collect();
    let rows: BTreeSet<_> = rows.iter().map(String::as_str).collect();
    let missing = rows
        .difference(&documented)
        .map(|row| format!("missing in docs: {row}"));
    let outdated = documented
        .difference(&rows)
        .map(|row| format!("outdated in docs: {row}"));
    wrong.extend(missing.chain(outdated));
    demand_none(
        &wrong,
        "clients act on codes: each has a row in code and in docs/error-codes.md",
    );
}

fn documentation_row(row: &ErrorRow) -> String {
    let again = if row.retryable { "yes" } else { "no" };
    format!(
        "| `{}` | {} | {again} | {} |",
        row.code, row.status, row.advice
    )
}

#[test]
fn metric_names_stand_in_metrics_files_only() {
    let crates = ["wow_kernel", "wow_actors", "wow_macros", "wow_migrations"];
    let mut wrong = Vec::new();
    for file in shipped_sources() {
        let is_metrics = file.path.ends_with("/metrics.rs") || file.path.contains("/metrics/");
        if is_metrics {
            continue;
        }
        for (number, line) in file.production() {
            for name in quoted_texts(line, "wow_") {
                if !crates.iter().any(|own| name.starts_with(own)) {
                    wrong.push(format!("{}:{number}: {name}", file.path));
                }
            }
        }
    }
    demand_none(
        &wrong,
        "name metrics in a metrics.rs, so that they can be found and listed",
    );
}

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

#[test]
fn this_file_finds_what_it_looks_for() {
    let file = |path: &str, text: &str| SourceFile {
        path: path.into(),
        text: text.into(),
    };
    let mixed = file(
        "src/a/mod.rs",
        "fn one() {}\n// two\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\nfn four() {}\n\
         #[cfg(test)]\n#[path = \"x\"]\nmod fixture;\n#[cfg(any(test, feature = \"f\"))]\n\
         pub mod five;\nfn six() {}\n",
    );
    let kept: Vec<_> = mixed
        .production()
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(kept, [1, 7, 13]);
    assert_eq!(
        mixed.test_modules(),
        [
            "src/a/fixture.rs",
            "src/a/fixture/",
            "src/a/five.rs",
            "src/a/five/"
        ]
    );
    let importing = file(
        "src/a/b.rs",
        "use crate::{config::{x, http}, http};\nuse super::super::kafka;\nuse super::own;\n\
         let x = crate::storage::open();\nuse my_crate::cluster;\n",
    );
    let named: Vec<_> = root_modules(&importing)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(named, ["config", "http", "storage", "kafka"]);
    assert!(holds_word("x.unwrap()", ".unwrap()") && !holds_word("x.unwrap_or(1)", ".unwrap()"));
    assert!(holds_word("impl Actor for Lane", "impl Actor for"));
    assert!(!holds_word("my_dbg!(x)", "dbg!"));
}
