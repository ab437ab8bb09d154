//! The shipped binary as its users meet it: arguments in; output and exit codes out.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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
        &["config", "check", "--set", "=1"],
        &["serve", "--set", "=1"],
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
fn a_setting_that_sets_nothing_or_twice_is_misuse_and_told_with_the_key() {
    let output = in_an_empty_folder(&["config", "print", "--set", "=1"]);
    assert_eq!(code(&output), 2);
    let told = stderr(&output);
    assert!(
        told.contains("'=1'") && told.contains("section.key=value"),
        "{told}"
    );
    for command in [&["config", "check"][..], &["serve"], &["migrate"]] {
        let twice = ["--set", "http.workers=1", "--set", "http.workers=2"];
        let output = in_an_empty_folder(&[command, &twice].concat());
        assert_eq!(code(&output), 2, "{command:?}");
        let told = stderr(&output);
        assert!(told.contains("http.workers is set twice"), "{told}");
    }
}

#[test]
fn what_serve_refuses_config_check_refuses_in_the_same_words() {
    for settings in [
        &["kafka.brokers=localhost:9092"][..],
        &["telemetry.otlp-endpoint=http://127.0.0.1:4317"],
        &["router.nobody=local"],
        &["storage.url=sqlite://"],
        &[
            "kafka.brokers=localhost:9092",
            "telemetry.otlp-endpoint=http://127.0.0.1:4317",
        ],
        &[
            "access.mode=jwt",
            "access.issuer=i",
            "access.audience=a",
            "access.pem-file=none.pem",
        ],
    ] {
        let settings: Vec<_> = settings.iter().flat_map(|set| ["--set", set]).collect();
        let checked = in_an_empty_folder(&[&["config", "check"][..], &settings].concat());
        let served = in_an_empty_folder(&[&["serve"][..], &settings].concat());
        assert_eq!((code(&checked), code(&served)), (1, 1), "{settings:?}");
        let told = stderr(&checked);
        assert!(
            !told.is_empty() && stderr(&served).ends_with(&told),
            "{told}"
        );
    }
    let settings = [
        "--set",
        "kafka.brokers=x:1",
        "--set",
        "cluster.enabled=false",
    ];
    let checked = in_an_empty_folder(&[&["config", "check", "--json"][..], &settings].concat());
    assert_eq!(code(&checked), 1);
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(report["sound"], false);
    assert!(
        report["faults"][0]
            .as_str()
            .unwrap()
            .starts_with("kafka.brokers is set")
    );
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
         http.workers is 0 (config.toml); use 1 to 512\n  \
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

/// A node of the test's own, killed when the test is over.
struct Node {
    process: Child,
    address: String,
}

impl Node {
    fn serve(folder: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_wow"))
            .args([
                "serve",
                "--set",
                "http.bind=127.0.0.1:0",
                "--set",
                "admin.bind=127.0.0.1:0",
            ])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines
            .find(|line| line.as_ref().unwrap().starts_with("http"))
            .unwrap()
            .unwrap();
        let address = line
            .split("http://")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned();
        Self { process, address }
    }

    /// Posts a body, and gives the answer's.
    fn post(&self, path: &str, body: &str) -> Value {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        write!(
            connection,
            "POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }

    /// Stops it as an operator does.
    fn stop(mut self) -> i32 {
        let id = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has ended where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn migrating_creates_the_database_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let migrate = || wow(folder.path(), &["migrate"], &[]);
    for _ in 0..2 {
        let output = migrate();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_eq!(
            stdout(&output),
            "the schema of sqlite://data/wow.db is up to date\n"
        );
    }
    assert!(folder.path().join("data/wow.db").exists());
    let memory = wow(
        folder.path(),
        &["migrate", "--set", "storage.url=memory:"],
        &[],
    );
    assert_eq!(stdout(&memory), "memory: has no schema\n");
}

#[test]
fn the_log_is_read_and_verified_beside_a_running_node() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::serve(folder.path());
    let created = node.post(
        "/account/create_account",
        "{\"name\":\"Ada\",\"balance\":7}",
    );
    let id = created["aggregateId"].as_str().unwrap();

    let shown = wow(folder.path(), &["log", "show", "account", id], &[]);
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    let text = stdout(&shown);
    assert!(text.contains("  create_account  request ") && text.contains("by anonymous\n"));
    assert!(
        text.ends_with("        account_created {\"name\":\"Ada\",\"balance\":7}\n"),
        "{text}"
    );
    let json = wow(
        folder.path(),
        &["log", "show", "account", id, "--json"],
        &[],
    );
    let commits: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(commits[0]["requestId"], created["requestId"]);
    assert_eq!(commits[0]["events"][0]["body"]["balance"], 7);

    let verified = wow(folder.path(), &["log", "verify"], &[]);
    assert_eq!(code(&verified), 0, "{}", stdout(&verified));
    assert!(stdout(&verified).starts_with("1 entries of 1 aggregates, 1 snapshots"));
    let refused = wow(folder.path(), &["migrate"], &[]);
    assert_eq!(code(&refused), 1);
    assert!(
        stderr(&refused).contains("is in use by another node"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(
        node.stop(),
        0,
        "R34: a stop that was asked for is no failure"
    );
}

#[test]
fn what_is_not_there_or_not_right_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    for absent in [&["log", "verify"][..], &["log", "show", "account", "a"]] {
        let output = wow(folder.path(), absent, &[]);
        assert_eq!(code(&output), 1);
        assert!(
            stderr(&output).contains("there is no database"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(code(&wow(folder.path(), &["migrate"], &[])), 0);
    let unknown = wow(folder.path(), &["log", "show", "account", "a"], &[]);
    assert_eq!(code(&unknown), 1);
    assert_eq!(
        stderr(&unknown),
        "wow: (0)/account/a has no commits after version 0\n"
    );
    spoil(folder.path());
    let output = wow(folder.path(), &["log", "verify"], &[]);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    assert!(
        stdout(&output).contains("wrong: partition 5: "),
        "{}",
        stdout(&output)
    );
    let output = wow(folder.path(), &["log", "verify", "--json"], &[]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (code(&output), report["findings"].as_array().unwrap().len()),
        (1, 1)
    );
}

/// Claims an entry that no log holds.
fn spoil(folder: &Path) {
    use sea_orm::ConnectionTrait as _;
    let url = format!("sqlite://{}/data/wow.db", folder.display());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let database = sea_orm::Database::connect(url).await.unwrap();
        let text = "update log_partition set head = 1 where partition_no = 5";
        let done = database.execute_unprepared(text).await.unwrap();
        assert_eq!(done.rows_affected(), 1);
        database.close().await.unwrap();
    });
}
