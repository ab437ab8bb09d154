//! `[admin]`: the port for operators, with metrics and later the console.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::keys::{Section, Visitor};
use super::secret::Secret;

/// The environment variable that may hold the admin port's token.
pub const ADMIN_TOKEN_VARIABLE: &str = "WOW_ADMIN_TOKEN";

/// The admin port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminConfig {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The file with the token that callers have to send.
    pub token_file: Option<PathBuf>,
    /// The token itself, from that file or from [`ADMIN_TOKEN_VARIABLE`].
    pub token: Option<Secret>,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 9091)),
            token_file: None,
            token: None,
        }
    }
}

impl Section for AdminConfig {
    const NAME: &'static str = "admin";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("bind", &mut self.bind);
        keys.any("token-file", &mut self.token_file);
    }
}
