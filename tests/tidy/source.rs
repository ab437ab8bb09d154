//! The Rust files of the repository, and what of them is shipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::root;

/// A Rust file of ours.
pub(crate) struct SourceFile {
    /// Its path below the root.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_in(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// Its lines of code outside tests, with their numbers: no comments, no `cfg(test)` items.
    pub(crate) fn production(&self) -> Vec<(usize, &str)> {
        let lines: Vec<_> = self.text.lines().collect();
        let mut kept = Vec::new();
        let mut index = 0;
        while let Some(line) = lines.get(index) {
            if is_test_attribute(line) {
                index = end_of_item(&lines, index);
            } else if !line.trim_start().starts_with("//") {
                kept.push((index + 1, *line));
            }
            index += 1;
        }
        kept
    }

    /// The modules that it declares for tests only, as path beginnings.
    fn test_modules(&self) -> Vec<String> {
        let path = Path::new(&self.path);
        let folder = match path.file_stem().unwrap().to_str().unwrap() {
            "mod" | "lib" | "main" => path.parent().unwrap().to_owned(),
            _ => path.with_extension(""),
        };
        let lines: Vec<_> = self.text.lines().collect();
        let mut modules = Vec::new();
        for index in 0..lines.len() {
            if !is_test_attribute(lines[index]) {
                continue;
            }
            let item = lines[start_of_item(&lines, index)].trim();
            let item = item
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub ");
            let name = item
                .strip_prefix("mod ")
                .and_then(|item| item.strip_suffix(';'));
            if let Some(name) = name {
                let module = folder.join(name).to_str().unwrap().to_owned();
                modules.extend([format!("{module}.rs"), format!("{module}/")]);
            }
        }
        modules
    }
}

/// The line on which an item begins whose attributes begin on this one.
fn start_of_item(lines: &[&str], attributes: usize) -> usize {
    let mut index = attributes;
    while lines[index].trim_start().starts_with("#[") {
        while !lines[index].trim_end().ends_with(']') {
            index += 1;
        }
        index += 1;
    }
    index
}

/// The line on which that item ends: formatted code closes it at the indent it began with.
fn end_of_item(lines: &[&str], attributes: usize) -> usize {
    let start = start_of_item(lines, attributes);
    let line = lines[start];
    if !line.trim_end().ends_with('{') {
        return start;
    }
    let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
    (start..lines.len())
        .find(|index| lines[*index] == end)
        .unwrap_or(lines.len())
}

fn is_test_attribute(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(any(test,")
}

/// Every Rust file of ours but these, which name what they forbid.
pub(crate) fn sources() -> Vec<SourceFile> {
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
    files.retain(|file| !file.is_in("tests/tidy/"));
    assert!(files.len() > 50, "the sources were not found");
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// Those that are part of what ships.
pub(crate) fn shipped_sources() -> Vec<SourceFile> {
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

/// Where a word stands in the shipped code of the files that are asked about.
pub(crate) fn occurrences(words: &[&str], asked: impl Fn(&SourceFile) -> bool) -> Vec<String> {
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
pub(crate) fn holds_word(line: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let begins_with_name = word.starts_with(is_name);
    let ends_with_name = word.ends_with(is_name);
    line.match_indices(word).any(|(index, _)| {
        let before = line[..index].chars().next_back().is_some_and(is_name);
        let after = line[index + word.len()..]
            .chars()
            .next()
            .is_some_and(is_name);
        !(begins_with_name && before || ends_with_name && after)
    })
}

/// The texts in quotes of a file that begin so.
pub(crate) fn quoted_texts<'a>(text: &'a str, beginning: &str) -> BTreeSet<&'a str> {
    let quoted = format!("\"{beginning}");
    text.match_indices(&quoted)
        .filter_map(|(index, _)| text[index + 1..].split('"').next())
        .collect()
}

#[test]
fn code_is_told_from_tests_and_words_from_parts_of_words() {
    let file = |path: &str, text: &str| SourceFile {
        path: path.into(),
        text: text.into(),
    };
    let mixed = file(
        "src/a/mod.rs",
        "fn one() {}\n// two\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\nfn four() {}\n\
         #[cfg(test)]\n#[allow(\n    clippy::x,\n    reason = \"y\"\n)]\nmod fixture;\n#[cfg(any(test, feature = \"f\"))]\n\
         pub mod five;\nfn six() {}\n",
    );
    let kept: Vec<_> = mixed
        .production()
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(kept, [1, 7, 16]);
    assert_eq!(
        mixed.test_modules(),
        [
            "src/a/fixture.rs",
            "src/a/fixture/",
            "src/a/five.rs",
            "src/a/five/"
        ]
    );
    assert!(holds_word("x.unwrap()", ".unwrap()") && !holds_word("x.unwrap_or(1)", ".unwrap()"));
    assert!(holds_word("impl Actor for Lane", "impl Actor for"));
    assert!(!holds_word("my_dbg!(x)", "dbg!"));
}
