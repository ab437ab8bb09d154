//! Which package may depend on which.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::source::occurrences;
use crate::{demand_none, root};

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
        // Itself, to turn its test kit on.
        &["wow-kernel", "wow"],
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
