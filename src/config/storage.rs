//! `[storage]`: where the log lives, and how it is written.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::keys::{Section, Visitor};
use super::secret::Secret;
use super::setting::{Auto, Raw, Setting, Unordered, choice, quoted};

/// The environment variable that may hold the password of the database.
pub const STORAGE_PASSWORD_VARIABLE: &str = "WOW_STORAGE_PASSWORD";

/// Which database holds the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// None: for tests, gone with the process.
    Memory,
    /// A file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    MySql,
}

impl Backend {
    /// Whether several nodes can share it.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Postgres | Self::MySql)
    }
}

/// Where the log lives. Its password is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct StorageUrl(String);

impl StorageUrl {
    fn parse(text: &str) -> Option<Self> {
        let rest = |prefixes: &[&str]| prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
        let is_url = text == "memory:"
            || rest(&["sqlite://"]).is_some_and(|path| !path.is_empty() && path != ":memory:")
            || rest(&["postgres://", "postgresql://", "mysql://"]).is_some_and(|at| !at.is_empty());
        (is_url && !text.contains(char::is_whitespace)).then(|| Self(text.to_owned()))
    }

    /// The log in memory.
    pub fn memory() -> Self {
        Self("memory:".to_owned())
    }

    /// The whole URL, with its password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Which database it names.
    pub fn backend(&self) -> Backend {
        match self.0.split_once(':').map_or("", |(scheme, _)| scheme) {
            "sqlite" => Backend::Sqlite,
            "postgres" | "postgresql" => Backend::Postgres,
            "mysql" => Backend::MySql,
            _ => Backend::Memory,
        }
    }

    /// Whether it holds a password.
    pub fn has_password(&self) -> bool {
        self.redacted() != self.0
    }

    /// The URL with every password replaced.
    pub fn redacted(&self) -> String {
        let (address, query) = match self.0.split_once('?') {
            Some((address, query)) => (address, Some(query)),
            None => (&*self.0, None),
        };
        let mut redacted = redact_user(address);
        if let Some(query) = query {
            let parts: Vec<_> = query.split('&').map(redact_parameter).collect();
            redacted.push('?');
            redacted.push_str(&parts.join("&"));
        }
        redacted
    }
}

/// Hides what stands between the first `:` and the last `@`: a password that should have been
/// escaped and was not is hidden too.
fn redact_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{scheme}://{name}:***@{host}"),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    }
}

fn redact_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("password") => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

impl fmt::Debug for StorageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageUrl({:?})", self.redacted())
    }
}

impl Setting for StorageUrl {
    type Bounded = Unordered;

    fn expected() -> String {
        "\"sqlite://data/wow.db\", \"postgres://…\", \"mysql://…\" or \"memory:\"".to_owned()
    }

    fn parse(raw: Raw<'_>) -> Option<Self> {
        match raw {
            Raw::Text(text) => Self::parse(text),
            _ => None,
        }
    }

    fn bounded(&self) -> Option<&Unordered> {
        None
    }

    fn print(&self) -> String {
        quoted(&self.redacted())
    }

    fn is_secret() -> bool {
        true
    }
}

choice! {
    /// What SQLite waits for at a commit.
    pub enum Synchronous {
        /// The disk: a commit survives the loss of power.
        Full = "full",
        /// The operating system: the last commits can be lost with the power.
        Normal = "normal",
    }
}

/// Where the log lives, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageConfig {
    /// Where it lives.
    pub url: StorageUrl,
    /// The file with the password of the database, where it isn't in the URL.
    pub password_file: Option<PathBuf>,
    /// The password itself, from that file or from [`STORAGE_PASSWORD_VARIABLE`].
    pub password: Option<Secret>,
    /// Whether the schema is brought up to date at start; by itself where no other node can be.
    pub migrate: Auto<bool>,
    /// Writer tasks; by itself as many as measured best for the database.
    pub writers: Auto<usize>,
    /// Connections for reading; by itself as many as the database takes well.
    pub connections: Auto<usize>,
    /// What SQLite waits for at a commit.
    pub synchronous: Synchronous,
    /// How long an append of unknown outcome is followed up (R54).
    pub append_timeout: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
}

impl StorageConfig {
    /// Whether the schema is brought up to date at start.
    pub fn migrates_at_start(&self) -> bool {
        self.migrate
            .unwrap_or_else(|| !self.url.backend().is_shared())
    }

    /// How many writer tasks.
    pub fn writer_count(&self) -> usize {
        self.writers
            .unwrap_or_else(|| if self.url.backend().is_shared() { 2 } else { 1 })
    }

    /// How many connections for reading.
    pub fn connection_count(&self) -> usize {
        self.connections.unwrap_or_else(|| {
            if self.url.backend().is_shared() {
                10
            } else {
                4
            }
        })
    }
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self {
            url: StorageUrl("sqlite://data/wow.db".to_owned()),
            password_file: None,
            password: None,
            migrate: Auto::Auto,
            writers: Auto::Auto,
            connections: Auto::Auto,
            synchronous: Synchronous::Full,
            append_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
        }
    }
}

impl Section for StorageConfig {
    const NAME: &'static str = "storage";

    fn visit(&mut self, keys: &mut impl Visitor) {
        let seconds = |seconds| Duration::from_secs(seconds);
        keys.any("url", &mut self.url);
        keys.any("password-file", &mut self.password_file);
        keys.any("migrate", &mut self.migrate);
        keys.within("writers", &mut self.writers, 1..=64);
        keys.within("connections", &mut self.connections, 1..=1000);
        keys.any("synchronous", &mut self.synchronous);
        keys.within(
            "append-timeout",
            &mut self.append_timeout,
            seconds(1)..=seconds(3600),
        );
        keys.within(
            "connect-timeout",
            &mut self.connect_timeout,
            seconds(1)..=seconds(300),
        );
        keys.within(
            "statement-timeout",
            &mut self.statement_timeout,
            seconds(1)..=seconds(300),
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_password_in_the_url_is_never_printed() {
        for (url, shown) in [
            ("postgres://wow:hunter2@db/wow", "postgres://wow:***@db/wow"),
            (
                "mysql://wow:hun/t@er2@db:3306/wow?ssl=1",
                "mysql://wow:***@db:3306/wow?ssl=1",
            ),
            (
                "postgres://db/wow?user=a&password=hunter2",
                "postgres://db/wow?user=a&password=***",
            ),
            (
                "postgres://db/wow?sslPassword=hunter2",
                "postgres://db/wow?sslPassword=***",
            ),
        ] {
            let url = StorageUrl::parse(url).unwrap();
            assert_eq!(url.redacted(), shown);
            assert!(url.has_password());
            assert!(!format!("{url:?}{}", url.print()).contains("er2"));
        }
        for open in [
            "sqlite://data/wow.db",
            "memory:",
            "postgres://wow@db/wow",
            "mysql://db:1/w",
        ] {
            let url = StorageUrl::parse(open).unwrap();
            assert_eq!(url.redacted(), open);
            assert!(!url.has_password());
        }
    }

    #[test]
    fn a_url_names_its_database() {
        for (url, backend) in [
            ("memory:", Backend::Memory),
            ("sqlite:///var/lib/wow/wow.db", Backend::Sqlite),
            ("postgres://db/wow", Backend::Postgres),
            ("postgresql://db/wow", Backend::Postgres),
            ("mysql://db/wow", Backend::MySql),
        ] {
            assert_eq!(StorageUrl::parse(url).unwrap().backend(), backend, "{url}");
        }
        for bad in [
            "",
            "memory",
            "sqlite:data.db",
            "sqlite://",
            "sqlite://:memory:",
            "db/wow",
        ] {
            assert_eq!(StorageUrl::parse(bad), None, "{bad}");
        }
    }
}
