//! What can be wrong with a configuration. All faults are gathered and reported together, each
//! with the source it comes from and what to write instead.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where a value comes from. Later ones win.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The code.
    Default,
    /// The file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A flag.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file can't be read.
    #[error("{} can't be read: {source}", path.display())]
    FileUnreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    FileInvalid {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A variable that can't be read as text.
    #[error("{name} is not UTF-8; environment variables have to be")]
    NotUtf8 {
        /// Which variable, as far as it can be read.
        name: String,
    },
    /// Which of two values is meant can't be known.
    #[error("{key} is set twice ({origin}); say which value is meant")]
    SetTwice {
        /// The key.
        key: String,
        /// Where it is.
        origin: Origin,
    },
    /// A key that doesn't exist.
    #[error("{key} is unknown ({origin}); {advice}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it stands.
        origin: Origin,
        /// What may be meant.
        advice: String,
    },
    /// A value where a section is meant.
    #[error("{section} is a section ({origin}); write [{section}] and its keys below")]
    NotASection {
        /// The section.
        section: &'static str,
        /// Where it stands.
        origin: Origin,
    },
    /// A value that can't be read.
    #[error("{key} is {found} ({origin}); use {expected}")]
    Unreadable {
        /// The key.
        key: String,
        /// What stands there.
        found: String,
        /// Where it stands.
        origin: Origin,
        /// What may stand there.
        expected: String,
    },
    /// A value out of its range; zero is no bound.
    #[error("{key} is {found} ({origin}); use {low} to {high}")]
    OutOfRange {
        /// The key.
        key: String,
        /// What stands there.
        found: String,
        /// Where it stands.
        origin: Origin,
        /// The least that may stand there.
        low: String,
        /// The most that may stand there.
        high: String,
    },
    /// What a key or a variable leads to can't be used.
    #[error("{key}: {advice}")]
    Unusable {
        /// The key or the variable.
        key: &'static str,
        /// What to do.
        advice: String,
    },
    /// Values that don't go together.
    #[error("{}: {advice}", .keys.join(", "))]
    Conflict {
        /// The keys.
        keys: Vec<&'static str>,
        /// What to do.
        advice: String,
    },
    /// A secret on the command line, where every process on the machine can read it.
    #[error("{key} holds a password on the command line; set it in a file or the environment")]
    SecretOnCommandLine {
        /// The key.
        key: String,
    },
}

impl Fault {
    /// Whether it is about this key, so that nothing follows from the key's value.
    pub(super) fn is_about(&self, name: &str) -> bool {
        match self {
            Self::Unreadable { key, .. }
            | Self::OutOfRange { key, .. }
            | Self::SecretOnCommandLine { key } => key == name,
            Self::Unusable { key, .. } => *key == name,
            _ => false,
        }
    }
}

/// A configuration that can't be used, with everything that is wrong with it.
#[derive(Debug, thiserror::Error)]
pub struct ConfigError {
    faults: Vec<Fault>,
}

impl ConfigError {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        Self { faults }
    }

    /// All faults: those of files first, then by section.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.faults.len() {
            1 => f.write_str("the configuration has a fault:")?,
            count => write!(f, "the configuration has {count} faults:")?,
        }
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}
