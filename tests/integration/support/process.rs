//! A node as an operator runs it: the shipped binary, its settings, signals and exit codes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::Client;

/// How long a node may take to start, and to stop. Machines that build beside the tests are slow.
const PATIENCE: Duration = Duration::from_secs(90);

/// A node's working folder: its data, its log, whatever else the test puts there.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    /// A new one, which goes with this value.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The database that a node here writes unless told otherwise.
    pub(crate) fn database(&self) -> PathBuf {
        self.path("data/wow.db")
    }

    /// Runs another of the binary's commands here.
    pub(crate) async fn wow(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wow"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear();
        command.output().await.unwrap()
    }

    /// The settings that free ports need, and no environment at all.
    fn command(&self, settings: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wow"));
        command.arg("serve");
        // What a test sets itself isn't set a second time.
        let is_free = |port: &&&str| {
            let key = port.split_inclusive('=').next().unwrap_or(port);
            !settings.iter().any(|setting| setting.starts_with(key))
        };
        let ports = ["http.bind=127.0.0.1:0", "admin.bind=127.0.0.1:0"];
        for setting in ports.iter().filter(is_free).chain(settings) {
            command.args(["--set", setting]);
        }
        command
            .current_dir(self.0.path())
            .env_clear()
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// A running node. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Node {
    child: Child,
    /// Held open: a node that can't write its lines would fail.
    _lines: Lines<BufReader<ChildStdout>>,
    http: String,
    admin: String,
}

impl Node {
    /// Starts a node with the default settings.
    pub(crate) async fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[]).await
    }

    /// Starts a node with settings such as `wait.timeout=1s`, and waits until it listens.
    pub(crate) async fn start_with(folder: &Folder, settings: &[&str]) -> Self {
        let mut starting = Starting::spawn(folder, settings);
        match timeout(PATIENCE, starting.listens()).await {
            Ok(Some((http, admin))) => starting.into_node(http, admin),
            ended => panic!(
                "the node doesn't start ({ended:?}): {}",
                log_of(folder.0.path())
            ),
        }
    }

    /// A client of its public port.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.http)
    }

    /// A client of its admin port.
    pub(crate) fn admin(&self) -> Client {
        Client::new(&self.admin)
    }

    /// Where its public port is, as `host:port`.
    pub(crate) fn address(&self) -> &str {
        self.http.strip_prefix("http://").unwrap()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Tells it to stop, as an operator does.
    pub(crate) async fn terminate(&self) {
        self.signal("TERM").await;
    }

    /// Sends it a signal, by its name.
    pub(crate) async fn signal(&self, name: &str) {
        // No package of signals for one line of shell.
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$0\"", &self.id().to_string(), name])
            .status();
        assert!(sent.await.unwrap().success());
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.expect("the node ends in time").unwrap()
    }

    /// Stops it in order: 0 is what it has to exit with.
    pub(crate) async fn stop(self) {
        self.terminate().await;
        assert_eq!(self.ended().await.code(), Some(0));
    }

    /// Kills it where it stands.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// A node that doesn't listen yet.
#[derive(Debug)]
pub(crate) struct Starting {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Starting {
    /// Starts the process. What it logs is added to the folder's `node.log`.
    pub(crate) fn spawn(folder: &Folder, settings: &[&str]) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.path("node.log"))
            .unwrap();
        let mut child = folder
            .command(settings)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads the lines in which it says where it listens; none where it ends without them.
    pub(crate) async fn listens(&mut self) -> Option<(String, String)> {
        let (mut http, mut admin) = (None, None);
        while http.is_none() || admin.is_none() {
            let line = self.lines.next_line().await.unwrap()?;
            let mut words = line.split_whitespace();
            match words.next() {
                Some("http") => http = words.next().map(str::to_owned),
                Some("admin") => admin = words.next().map(str::to_owned),
                _ => {}
            }
        }
        http.zip(admin)
    }

    pub(crate) fn into_node(self, http: String, admin: String) -> Node {
        Node {
            child: self.child,
            _lines: self.lines,
            http,
            admin,
        }
    }

    /// Kills it where it stands.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Starts a node that has to refuse, and gives its exit code and what it says.
pub(crate) async fn refusal(folder: &Folder, settings: &[&str]) -> (Option<i32>, String) {
    let output = timeout(PATIENCE, folder.command(settings).output()).await;
    let output = output.expect("it refuses at once").unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

fn log_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("node.log")).unwrap_or_default()
}
