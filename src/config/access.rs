//! `[access]`: how callers are known.

use std::path::PathBuf;

use super::keys::{Section, Visitor};
use super::setting::choice;

choice! {
    /// How callers are known.
    pub enum AccessModeSetting {
        /// Identity headers are believed.
        Open = "open",
        /// Callers prove who they are with a token.
        Jwt = "jwt",
    }
}

/// How callers are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessConfig {
    /// By their word, or by a token.
    pub mode: AccessModeSetting,
    /// Whether `open` may listen where others than this machine reach it.
    pub allow_open_on_public: bool,
    /// Who must have issued a token: its `iss`.
    pub issuer: Option<String>,
    /// For whom a token must have been issued: its `aud`.
    pub audience: Option<String>,
    /// The file with the secret of HS256 tokens.
    pub hs256_secret_file: Option<PathBuf>,
    /// The file with the keys of RS256, ES256 and `EdDSA` tokens, as a JWK set.
    pub jwks_file: Option<PathBuf>,
    /// The file with one public key of RS256, ES256 or `EdDSA` tokens, as PEM.
    pub pem_file: Option<PathBuf>,
    /// The claim with the tenant.
    pub tenant_claim: String,
    /// The claim with the roles.
    pub roles_claim: String,
    /// The claim with the space.
    pub space_claim: String,
}

impl Default for AccessConfig {
    fn default() -> Self {
        Self {
            mode: AccessModeSetting::Open,
            allow_open_on_public: false,
            issuer: None,
            audience: None,
            hs256_secret_file: None,
            jwks_file: None,
            pem_file: None,
            tenant_claim: "tenant_id".to_owned(),
            roles_claim: "roles".to_owned(),
            space_claim: "space_id".to_owned(),
        }
    }
}

impl Section for AccessConfig {
    const NAME: &'static str = "access";

    fn visit(&mut self, keys: &mut impl Visitor) {
        keys.any("mode", &mut self.mode);
        keys.any("allow-open-on-public", &mut self.allow_open_on_public);
        keys.any("issuer", &mut self.issuer);
        keys.any("audience", &mut self.audience);
        keys.any("hs256-secret-file", &mut self.hs256_secret_file);
        keys.any("jwks-file", &mut self.jwks_file);
        keys.any("pem-file", &mut self.pem_file);
        keys.any("tenant-claim", &mut self.tenant_claim);
        keys.any("roles-claim", &mut self.roles_claim);
        keys.any("space-claim", &mut self.space_claim);
    }
}
