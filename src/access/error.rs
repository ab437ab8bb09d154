//! Why a token proves nothing, and why a file gives no keys.

use std::io;
use std::path::PathBuf;

use jsonwebtoken::errors::ErrorKind;
use wow_kernel::access::AccessError;

/// Why a token doesn't prove who calls. No text here holds anything of the token: claims are
/// named as the configuration names them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is longer than any that is looked at.
    #[error("the token is longer than {limit} bytes; ask for one with fewer claims")]
    TooLong {
        /// The bound.
        limit: usize,
    },
    /// It is no signed token, or says so of itself.
    #[error("the token can't be read; send a signed JWT")]
    Malformed,
    /// It asks to be checked in a way that its issuer's key is not for.
    #[error("the token's algorithm is not one that this node's keys are for")]
    AlgorithmRefused,
    /// None of the node's keys is meant.
    #[error("the token's key is not known here; ask for a new token")]
    KeyUnknown,
    /// The signature is not by one of the node's keys.
    #[error("the token's signature is wrong; ask for a new token")]
    SignatureInvalid,
    /// Its time is over.
    #[error("the token has expired; ask for a new one")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet; check the issuer's clock")]
    NotYetValid,
    /// Somebody else issued it.
    #[error("the token is by another issuer; ask this service's own issuer for one")]
    IssuerWrong,
    /// It was issued for somebody else.
    #[error("the token is for another audience; ask for one for this service")]
    AudienceWrong,
    /// A claim is needed and not there.
    #[error("the token lacks the claim '{claim}'")]
    ClaimMissing {
        /// Which claim.
        claim: String,
    },
    /// A claim holds what it can't.
    #[error("the token's claim '{claim}' can't be used")]
    ClaimInvalid {
        /// Which claim.
        claim: String,
    },
}

impl TokenError {
    pub(super) fn from_kind(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::ExpiredSignature => Self::Expired,
            ErrorKind::ImmatureSignature => Self::NotYetValid,
            ErrorKind::InvalidIssuer => Self::IssuerWrong,
            ErrorKind::InvalidAudience => Self::AudienceWrong,
            ErrorKind::InvalidAlgorithm => Self::AlgorithmRefused,
            ErrorKind::InvalidSignature => Self::SignatureInvalid,
            ErrorKind::MissingRequiredClaim(claim) => Self::ClaimMissing {
                claim: claim.clone(),
            },
            ErrorKind::InvalidClaimFormat(claim) => Self::ClaimInvalid {
                claim: claim.clone(),
            },
            _ => Self::Malformed,
        }
    }
}

/// A caller whose token proves nothing is told to authenticate; it is never taken for an
/// anonymous one.
impl From<TokenError> for AccessError {
    fn from(_: TokenError) -> Self {
        Self::Unauthenticated
    }
}

/// Why a file gives no key to verify with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It can't be read.
    #[error("the key file {} can't be read: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is larger than any key file.
    #[error("the key file {} is larger than {limit} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// The secret could be guessed.
    #[error(
        "the secret in {} is shorter than {limit} bytes; make one with: openssl rand -hex 32",
        path.display()
    )]
    SecretTooShort {
        /// Which file.
        path: PathBuf,
        /// The bound.
        limit: usize,
    },
    /// It is no JWK set.
    #[error("{} is no JWK set: {reason}", path.display())]
    JwksInvalid {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It is a JWK set, and none of its keys is of use.
    #[error(
        "{} holds no key for RS256 (2048 bits or more), ES256 or EdDSA signatures",
        path.display()
    )]
    NoUsableKey {
        /// Which file.
        path: PathBuf,
    },
    /// It holds more keys than a token is tried with.
    #[error("{} holds more than {limit} keys; take old ones out", path.display())]
    TooManyKeys {
        /// Which file.
        path: PathBuf,
        /// The bound.
        limit: usize,
    },
    /// It holds what must not leave the issuer.
    #[error("{} holds a private key; give this node the public one", path.display())]
    PrivateKey {
        /// Which file.
        path: PathBuf,
    },
    /// It is no public key.
    #[error(
        "{} is no public key in PEM for RS256 (2048 bits or more), ES256 or EdDSA",
        path.display()
    )]
    PemInvalid {
        /// Which file.
        path: PathBuf,
    },
}
