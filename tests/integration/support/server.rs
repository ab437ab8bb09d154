//! A database server that one test owns, to be killed and started again under load. Tests that
//! only store something share the servers that `./test` names in the environment.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

/// Brings servers up and down, on machines of every kind.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/servers");

/// What kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, or MySQL where that is what the machine has.
    Mysql,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    /// The URL of a server's own database, as the account that may do everything.
    pub(crate) fn url(self, address: SocketAddr) -> String {
        match self {
            Self::Postgres => format!("postgres://postgres@{address}/postgres"),
            Self::Mysql => format!("mysql://root@{address}/mysql"),
        }
    }
}

/// A server on a port and in a folder of its own. Dropped, it is killed and its folder goes; should
/// the test be killed itself, the script's watchdog sees to it.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    folder: TempDir,
    address: SocketAddr,
}

impl Server {
    /// Makes one with an empty data folder, and waits until it takes connections.
    pub(crate) async fn start(kind: Kind) -> Self {
        let mut server = Self {
            kind,
            folder: tempfile::tempdir().unwrap(),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
        };
        let said = server.tell("start").await;
        let port = said.split_whitespace().next().unwrap();
        server.address.set_port(port.parse().unwrap());
        server
    }

    /// Where it listens, the same after a restart.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its own database; `Kind::url` makes one that leads through a proxy.
    pub(crate) fn url(&self) -> String {
        self.kind.url(self.address)
    }

    /// Kills all its processes where they stand.
    pub(crate) async fn kill(&self) {
        self.tell("kill").await;
    }

    /// Stops it in order.
    pub(crate) async fn stop(&self) {
        self.tell("stop").await;
    }

    /// Starts it again, on its port and data, and waits until it takes connections.
    pub(crate) async fn restart(&self) {
        self.tell("restart").await;
    }

    /// Has all its processes stand still. Connections stay open, and new ones are made by the
    /// system, but nobody answers.
    pub(crate) async fn pause(&self) {
        self.tell("pause").await;
    }

    /// Has them go on.
    pub(crate) async fn resume(&self) {
        self.tell("resume").await;
    }

    async fn tell(&self, verb: &str) -> String {
        let mut command = Command::new(SCRIPT);
        command
            .args([verb, self.kind.name()])
            .arg(self.folder.path());
        let output = command.stdin(Stdio::null()).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{verb} {:?}: {failed}", self.kind);
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut command = std::process::Command::new(SCRIPT);
        command
            .args(["remove", self.kind.name()])
            .arg(self.folder.path());
        // A test that fails already says why.
        let _ = command.stdin(Stdio::null()).status();
    }
}
