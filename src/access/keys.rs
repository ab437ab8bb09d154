//! Keys: what a file's content makes of a token's signature. Each key is for one algorithm.

use std::fmt;
use std::path::Path;

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};

use super::KeySource;
use super::error::{KeyError, TokenError};

/// HS256 with less than the hash's own length is weaker than the hash (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;

/// RSA keys below 2048 bits are refused (RFC 7518, 3.3).
const RSA_BYTES_MIN: usize = 256;

/// An uncompressed point of P-256.
const P256_BYTES: usize = 65;

const ED25519_BYTES: usize = 32;

/// A token without a key id is tried with each key of its algorithm: so many, no more.
const KEYS_MAX: usize = 32;

/// One key, for one algorithm.
pub(super) struct VerifyingKey {
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
    id: Option<String>,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey")
            .field("algorithm", &self.algorithm)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl VerifyingKey {
    fn new(algorithm: Algorithm, key: DecodingKey, id: Option<String>) -> Self {
        Self { algorithm, key, id }
    }

    /// A key without an id, or a token that names none, leaves the choice to the signature.
    fn is_meant_by(&self, id: Option<&str>) -> bool {
        match (self.id.as_deref(), id) {
            (Some(own), Some(meant)) => own == meant,
            _ => true,
        }
    }
}

/// The keys of a file.
#[derive(Debug)]
pub(super) struct KeySet(Vec<VerifyingKey>);

impl KeySet {
    /// Reads the content of a key file.
    pub(super) fn parse(source: &KeySource, content: &[u8]) -> Result<Self, KeyError> {
        match source {
            KeySource::Hs256Secret(path) => secret(path, content),
            KeySource::Jwks(path) => jwks(path, content),
            KeySource::Pem(path) => pem(path, content),
        }
    }

    /// The keys that a token may be verified with.
    pub(super) fn candidates(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
    ) -> Result<impl Iterator<Item = &VerifyingKey>, TokenError> {
        let is_ours = self.0.iter().any(|key| key.algorithm == algorithm);
        if !is_ours {
            return Err(TokenError::AlgorithmRefused);
        }
        Ok(self
            .0
            .iter()
            .filter(move |key| key.algorithm == algorithm && key.is_meant_by(id)))
    }
}

fn secret(path: &Path, content: &[u8]) -> Result<KeySet, KeyError> {
    // An editor's line end is no part of the secret.
    let secret = content.strip_suffix(b"\n").unwrap_or(content);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    let too_short = || KeyError::SecretTooShort {
        path: path.to_owned(),
        limit: SECRET_BYTES_MIN,
    };
    if secret.len() < SECRET_BYTES_MIN {
        return Err(too_short());
    }
    let key = DecodingKey::from_secret(secret).map_err(|_| too_short())?;
    Ok(KeySet(vec![VerifyingKey::new(Algorithm::HS256, key, None)]))
}

fn jwks(path: &Path, content: &[u8]) -> Result<KeySet, KeyError> {
    let set: JwkSet = serde_json::from_slice(content).map_err(|error| KeyError::JwksInvalid {
        path: path.to_owned(),
        // The error's own text may quote the file.
        reason: format!("line {}, column {}", error.line(), error.column()),
    })?;
    if set.keys.len() > KEYS_MAX {
        return Err(KeyError::TooManyKeys {
            path: path.to_owned(),
            limit: KEYS_MAX,
        });
    }
    // An issuer's set may hold keys for other uses: they are passed over.
    let keys: Vec<_> = set.keys.iter().filter_map(from_jwk).collect();
    if keys.is_empty() {
        return Err(KeyError::NoUsableKey {
            path: path.to_owned(),
        });
    }
    Ok(KeySet(keys))
}

fn from_jwk(jwk: &Jwk) -> Option<VerifyingKey> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    let is_for_it = jwk
        .common
        .key_algorithm
        .is_none_or(|own| own == KeyAlgorithm::from(algorithm));
    let signs = matches!(
        &jwk.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    );
    let key = DecodingKey::from_jwk(jwk).ok()?;
    (is_for_it && signs && is_sound(algorithm, &key))
        .then(|| VerifyingKey::new(algorithm, key, jwk.common.key_id.clone()))
}

fn pem(path: &Path, content: &[u8]) -> Result<KeySet, KeyError> {
    const PRIVATE: &[u8] = b"PRIVATE KEY-----";
    if content
        .windows(PRIVATE.len())
        .any(|window| window == PRIVATE)
    {
        return Err(KeyError::PrivateKey {
            path: path.to_owned(),
        });
    }
    let readings = [
        (Algorithm::RS256, DecodingKey::from_rsa_pem(content)),
        (Algorithm::ES256, DecodingKey::from_ec_pem(content)),
        (Algorithm::EdDSA, DecodingKey::from_ed_pem(content)),
    ];
    for (algorithm, reading) in readings {
        if let Ok(key) = reading
            && is_sound(algorithm, &key)
        {
            return Ok(KeySet(vec![VerifyingKey::new(algorithm, key, None)]));
        }
    }
    Err(KeyError::PemInvalid {
        path: path.to_owned(),
    })
}

/// Whether a key is of the algorithm's curve, or long enough.
fn is_sound(algorithm: Algorithm, key: &DecodingKey) -> bool {
    let bytes = match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, .. } => {
            n.iter().skip_while(|byte| **byte == 0).count()
        }
        DecodingKeyKind::SecretOrDer(bytes) => bytes.len(),
    };
    match algorithm {
        Algorithm::ES256 => bytes == P256_BYTES,
        Algorithm::EdDSA => bytes == ED25519_BYTES,
        _ => bytes >= RSA_BYTES_MIN,
    }
}
