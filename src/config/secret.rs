//! Secrets: from the environment or a file, never printed.

use std::fmt;
use std::fs;
use std::path::Path;

use super::fault::Fault;
use super::source::Sources;

const TOKEN_CHARS_MIN: usize = 16;

/// A secret that no log, dump or message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret; whoever compares it does so in constant time.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// Where a secret may stand: in a file that a key names, or in a variable, but not in both.
pub(super) struct SecretSource<'a> {
    pub(super) key: &'static str,
    pub(super) file: Option<&'a Path>,
    pub(super) variable: &'static str,
    /// What is wrong with a secret, if anything.
    pub(super) fault: fn(&str) -> Option<&'static str>,
}

impl SecretSource<'_> {
    /// Reads the secret, if there is one.
    pub(super) fn read(&self, sources: &Sources, faults: &mut Vec<Fault>) -> Option<Secret> {
        let from_variable = sources.variable(self.variable, faults);
        let from_file = self.file.and_then(|path| match fs::read_to_string(path) {
            Ok(text) => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => {
                let advice = format!("{} can't be read: {error}", path.display());
                faults.push(Fault::Unusable {
                    key: self.key,
                    advice,
                });
                None
            }
        });
        let (token, key) = match (from_file, from_variable) {
            (Some(_), Some(_)) => {
                let advice = format!("{} holds one too; take one out", self.variable);
                faults.push(Fault::Unusable {
                    key: self.key,
                    advice,
                });
                return None;
            }
            (Some(token), None) => (token, self.key),
            (None, Some(token)) => (token, self.variable),
            (None, None) => return None,
        };
        match (self.fault)(&token) {
            None => Some(Secret(token)),
            Some(advice) => {
                faults.push(Fault::Unusable {
                    key,
                    advice: advice.to_owned(),
                });
                None
            }
        }
    }
}

/// What is wrong with a token, which travels in a header.
pub(super) fn token_fault(token: &str) -> Option<&'static str> {
    if token.len() < TOKEN_CHARS_MIN {
        Some("the token is shorter than 16 characters; make one with: openssl rand -hex 32")
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Some("the token holds a character that a header can't carry; use letters and digits")
    } else {
        None
    }
}

/// What is wrong with a password, of which its server is the judge.
pub(super) fn password_fault(password: &str) -> Option<&'static str> {
    password.is_empty().then_some("the password is empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(redacted)");
    }
}
