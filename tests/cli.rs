//! The shipped binary as its users meet it: arguments in; output and exit codes out.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `wow` in a folder, with no environment but what is given.
fn wow(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wow"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn in_an_empty_folder(arguments: &[&str]) -> Output {
    wow(tempfile::tempdir().unwrap().path(), arguments, &[])
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn alone_it_says_how_to_start() {
    let output = in_an_empty_folder(&[]);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("wow serve"));
    assert!(stdout(&output).contains("curl -X POST http://127.0.0.1:8080/account/create_account"));
}

#[test]
fn misuse_exits_with_2_and_help_with_0() {
    for misuse in [
        &["no-such-command"][..],
        &["config"],
        &["config", "print", "--no-such-flag"],
        &["id", "--count", "0"],
        &["config", "check", "--set", "http.bind"],
    ] {
        let output = in_an_empty_folder(misuse);
        assert_eq!(code(&output), 2, "{misuse:?}");
        assert!(
            !stderr(&output).is_empty() && output.stdout.is_empty(),
            "{misuse:?}"
        );
    }
    for help in [
        &["--help"][..],
        &["config", "--help"],
        &["id", "--help"],
        &["--version"],
    ] {
        let output = in_an_empty_folder(help);
        assert_eq!(code(&output), 0, "{help:?}");
    }
}

#[test]
fn ids_are_distinct_and_sort_by_the_time_they_were_made() {
    let output = in_an_empty_folder(&["id", "--count", "1000"]);
    let text = stdout(&output);
    let ids: Vec<_> = text.lines().collect();
    assert_eq!(ids.len(), 1000);
    assert!(
        ids.iter()
            .all(|id| id.len() == 36 && id.as_bytes()[14] == b'7')
    );
    assert!(ids.is_sorted_by(|one, next| one < next));
    assert_eq!(stdout(&in_an_empty_folder(&["id"])).lines().count(), 1);
}

#[test]
fn a_sound_configuration_is_said_to_be_sound() {
    let output = in_an_empty_folder(&["config", "check"]);
    assert_eq!(
        (code(&output), &*stdout(&output)),
        (0, "the configuration is sound\n")
    );
    let output = in_an_empty_folder(&["config", "check", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sound"], true);
}

#[test]
fn a_faulty_configuration_exits_with_1_and_names_every_fault() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("config.toml"), "[http]\nworkers = 0\n").unwrap();
    let environment = [("WOW__LOG__PARTITIONS", "x")];
    let faulty = |arguments: &[&str]| wow(folder.path(), arguments, &environment);
    let output = faulty(&["config", "check", "--set", "wait.tineout=1s"]);
    assert_eq!(code(&output), 1);
    assert_eq!(
        stderr(&output),
        "wow: the configuration has 3 faults:\n  \
         http.workers is 0 (config.toml); use 1 to 1024\n  \
         log.partitions is \"x\" (WOW__LOG__PARTITIONS); use a whole number\n  \
         wait.tineout is unknown (command line); did you mean wait.timeout?\n"
    );
    let output = faulty(&["config", "check", "--json"]);
    assert_eq!(code(&output), 1);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["faults"].as_array().unwrap().len(), 2);
    assert_eq!(code(&faulty(&["config", "print"])), 1);
}

#[test]
fn the_configuration_is_printed_with_its_sources_and_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.toml");
    std::fs::write(&file, "[context]\nname = \"shop\"\n").unwrap();
    let environment = [("WOW__STORAGE__URL", "postgres://wow:hunter2@db/wow")];
    let print = |arguments: &[&str]| {
        let named = [
            &["--config", file.to_str().unwrap(), "config", "print"],
            arguments,
        ]
        .concat();
        let output = wow(folder.path(), &named, &environment);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let text = print(&["--set", "http.workers=3"]);
    assert!(
        text.contains(&format!("name = \"shop\"  # {}\n", file.display())),
        "{text}"
    );
    assert!(text.contains("workers = 3  # command line\n"), "{text}");
    assert!(
        text.contains("url = \"postgres://wow:***@db/wow\"  # WOW__STORAGE__URL\n"),
        "{text}"
    );
    let json = print(&["--json"]);
    let keys: Value = serde_json::from_str(&json).unwrap();
    let partitions = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["key"] == "log.partitions")
        .unwrap();
    assert_eq!(partitions["value"], 64);
    assert_eq!(partitions["source"], "default");
    assert!(!format!("{text}{json}").contains("hunter2"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_wow"))
        .args(["id", "--count", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}
