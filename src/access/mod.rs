//! Access: makes a caller's token a principal of the kernel.
//!
//! The signature, the issuer, the audience and the times of a token are checked here; what a
//! known caller may do is the kernel's to judge. The algorithm follows from the configured key,
//! never from the token, so a token can't choose how it is checked.

mod error;
mod key_file;
mod keys;

use std::path::PathBuf;
use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};
use wow_kernel::access::Principal;
use wow_kernel::ports::Clock;

pub use self::error::{KeyError, TokenError};
use self::key_file::KeyFile;
use self::keys::{KeySet, VerifyingKey};

/// How far the issuer's clock and ours may be apart, in seconds.
const LEEWAY_SECONDS: u64 = 30;

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// What tokens are verified with. The file is read anew when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file with the secret of HS256 tokens.
    Hs256Secret(PathBuf),
    /// A file with a JWK set, for RS256, ES256 and `EdDSA`.
    Jwks(PathBuf),
    /// A file with one public key as PEM, for RS256, ES256 or `EdDSA`.
    Pem(PathBuf),
}

/// Which claims hold what the kernel asks for. A name that begins with `/` is a JSON pointer to
/// a nested claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimNames {
    /// The tenant, a text.
    pub tenant: String,
    /// The roles, a list of texts or one text with blanks between them.
    pub roles: String,
    /// The space, a text.
    pub space: String,
}

/// How tokens are verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessSettings {
    /// Who must have issued a token (`iss`).
    pub issuer: String,
    /// For whom it must have been issued (`aud`).
    pub audience: String,
    /// What it is verified with.
    pub keys: KeySource,
    /// Where its facts are.
    pub claims: ClaimNames,
}

/// Verifies tokens. One for the node, shared by all entry points.
#[derive(Debug)]
pub struct Verifier {
    file: KeyFile,
    issuer: String,
    audience: String,
    claims: ClaimNames,
}

impl Verifier {
    /// Reads the keys.
    ///
    /// # Errors
    /// [`KeyError`] where the file gives no key to verify with.
    pub async fn open(settings: AccessSettings, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        Ok(Self {
            file: KeyFile::open(settings.keys, clock).await?,
            issuer: settings.issuer,
            audience: settings.audience,
            claims: settings.claims,
        })
    }

    /// The caller that a token names.
    ///
    /// # Errors
    /// [`TokenError`]; its text never holds anything of the token.
    pub async fn verify(&self, token: &str) -> Result<Principal, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong {
                limit: TOKEN_BYTES_MAX,
            });
        }
        let keys = self.file.current().await;
        let claims = self.verified_claims(token, &keys)?;
        self.principal(&Value::Object(claims))
    }

    fn verified_claims(
        &self,
        token: &str,
        keys: &KeySet,
    ) -> Result<Map<String, Value>, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
        let mut refusal = TokenError::KeyUnknown;
        for key in keys.candidates(header.alg, header.kid.as_deref())? {
            match decode(token, &key.key, &self.validation(key)) {
                Ok(verified) => return Ok(verified.claims),
                Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {
                    refusal = TokenError::SignatureInvalid;
                }
                Err(error) => return Err(TokenError::from_kind(error.kind())),
            }
        }
        Err(refusal)
    }

    fn validation(&self, key: &VerifyingKey) -> Validation {
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation
    }

    fn principal(&self, claims: &Value) -> Result<Principal, TokenError> {
        let subject = text_claim(claims, "sub")?.ok_or_else(|| TokenError::ClaimMissing {
            claim: "sub".to_owned(),
        })?;
        Ok(Principal {
            subject: Some(subject),
            tenant: text_claim(claims, &self.claims.tenant)?,
            space: text_claim(claims, &self.claims.space)?,
            roles: roles_claim(claims, &self.claims.roles)?,
        })
    }
}

fn find<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    let found = if name.starts_with('/') {
        claims.pointer(name)
    } else {
        claims.get(name)
    };
    found.filter(|value| !value.is_null())
}

fn text_claim(claims: &Value, name: &str) -> Result<Option<Arc<str>>, TokenError> {
    match find(claims, name) {
        None => Ok(None),
        // An empty fact would be no fact: a tenant of "" must not mean "any".
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(Arc::from(&**text))),
        Some(_) => Err(TokenError::ClaimInvalid {
            claim: name.to_owned(),
        }),
    }
}

fn roles_claim(claims: &Value, name: &str) -> Result<Vec<Arc<str>>, TokenError> {
    let invalid = || TokenError::ClaimInvalid {
        claim: name.to_owned(),
    };
    match find(claims, name) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.split_whitespace().map(Arc::from).collect()),
        Some(Value::Array(roles)) => roles
            .iter()
            .map(|role| role.as_str().map(Arc::from).ok_or_else(invalid))
            .collect(),
        Some(_) => Err(invalid()),
    }
}

#[cfg(test)]
mod tests;
