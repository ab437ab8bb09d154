//! `[cluster]`: the internal port, on which the nodes of one service talk (R76).

use std::net::SocketAddr;
use std::path::PathBuf;

use super::keys::{Section, Visitor};
use super::secret::Secret;
use super::setting::text_setting;

/// The environment variable that may hold the cluster's token.
pub const CLUSTER_TOKEN_VARIABLE: &str = "WOW_CLUSTER_TOKEN";

/// Where a node is reached: a host name or IP address, with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort(String);

impl HostPort {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let is_host = !host.is_empty()
            && (host.starts_with('[') == host.ends_with(']'))
            && (host.starts_with('[') || !host.contains(':'))
            && host
                .chars()
                .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | '@' | '?' | '#'));
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        (is_host && is_port).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_setting!(
    HostPort,
    "a host with a port, such as \"node-1.example.internal:9090\"",
    |text| Self::parse(text),
    |value| value.as_str()
);

/// The cluster channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Whether this node talks to others.
    pub enabled: bool,
    /// Where the internal port listens.
    pub bind: SocketAddr,
    /// Where other nodes reach it; by itself where it listens.
    pub advertise: Option<HostPort>,
    /// The file with this node's certificate, in PEM; without, the channel is in plain text.
    pub certificate_file: Option<PathBuf>,
    /// The file with its private key.
    pub key_file: Option<PathBuf>,
    /// The file with the authority that signs the certificates of all nodes.
    pub ca_file: Option<PathBuf>,
    /// The file with the token that all nodes of the service share.
    pub token_file: Option<PathBuf>,
    /// The token itself, from that file or from [`CLUSTER_TOKEN_VARIABLE`].
    pub token: Option<Secret>,
}

impl ClusterConfig {
    /// Where other nodes reach this one.
    pub fn advertised(&self) -> String {
        self.advertise
            .as_ref()
            .map_or_else(|| self.bind.to_string(), |at| at.as_str().to_owned())
    }
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            bind: SocketAddr::from(([127, 0, 0, 1], 9090)),
            advertise: None,
            certificate_file: None,
            key_file: None,
            ca_file: None,
            token_file: None,
            token: None,
        }
    }
}

impl Section for ClusterConfig {
    const NAME: &'static str = "cluster";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("enabled", &mut self.enabled);
        keys.any("bind", &mut self.bind);
        keys.any("advertise", &mut self.advertise);
        keys.any("token-file", &mut self.token_file);
        keys.any("certificate-file", &mut self.certificate_file);
        keys.any("key-file", &mut self.key_file);
        keys.any("ca-file", &mut self.ca_file);
    }
}
