//! A door with a key file of its own, and tokens for it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod keys;
mod tokens;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::json;
use wow_kernel::access::AccessError;
use wow_kernel::id::EpochMillis;

use super::*;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const RSA: &str = include_str!("../testdata/rsa.private.pem");
const RSA_PUBLIC: &str = include_str!("../testdata/rsa.public.pem");
const RSA_NEXT: &str = include_str!("../testdata/rsa-next.private.pem");
const RSA_NEXT_PUBLIC: &str = include_str!("../testdata/rsa-next.public.pem");
const RSA_1024_PUBLIC: &str = include_str!("../testdata/rsa-1024.public.pem");
const EC: &str = include_str!("../testdata/ec.private.pem");
const EC_PUBLIC: &str = include_str!("../testdata/ec.public.pem");
const EC_P384_PUBLIC: &str = include_str!("../testdata/ec-p384.public.pem");
const ED: &str = include_str!("../testdata/ed.private.pem");
const ED_PUBLIC: &str = include_str!("../testdata/ed.public.pem");

/// A clock that only the test moves.
#[derive(Default)]
struct Hand(AtomicU64);

impl Hand {
    fn advance(&self, duration: Duration) {
        self.0.fetch_add(
            u64::try_from(duration.as_millis()).unwrap(),
            Ordering::SeqCst,
        );
    }
}

impl Clock for Hand {
    fn now(&self) -> EpochMillis {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A verifier over a key file in a folder of the test's own.
struct Door {
    folder: tempfile::TempDir,
    clock: Arc<Hand>,
    verifier: Verifier,
}

impl Door {
    async fn open(source: fn(PathBuf) -> KeySource, content: &str) -> Result<Self, KeyError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, content).unwrap();
        let clock = Arc::new(Hand::default());
        let verifier = Verifier::open(settings(source(path)), clock.clone()).await?;
        Ok(Self {
            folder,
            clock,
            verifier,
        })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("keys")
    }

    /// Replaces the key file as a rotation does, and lets a second pass.
    fn rotate(&self, content: &str) {
        let next = self.folder.path().join("next");
        fs::write(&next, content).unwrap();
        fs::rename(next, self.file()).unwrap();
        self.clock.advance(Duration::from_secs(1));
    }

    async fn refusal(&self, token: &str) -> TokenError {
        self.verifier.verify(token).await.unwrap_err()
    }
}

fn settings(keys: KeySource) -> AccessSettings {
    AccessSettings {
        issuer: "https://id.example".to_owned(),
        audience: "wow".to_owned(),
        keys,
        claims: ClaimNames {
            tenant: "tenant_id".to_owned(),
            roles: "roles".to_owned(),
            space: "space_id".to_owned(),
        },
    }
}

/// Claims that pass, with these in their place; a null takes one out.
fn claims(changes: Value) -> Value {
    let mut claims = json!({
        "sub": "alice",
        "iss": "https://id.example",
        "aud": "wow",
        "exp": get_current_timestamp() + 600,
    });
    let object = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
    claims
}

fn hs256(changes: Value) -> String {
    let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    encode(&Header::new(Algorithm::HS256), &claims(changes), &key).unwrap()
}

fn signed(algorithm: Algorithm, pem: &str, id: Option<&str>) -> String {
    let key = encoding_key(algorithm, pem);
    let header = Header {
        kid: id.map(ToOwned::to_owned),
        ..Header::new(algorithm)
    };
    encode(&header, &claims(json!({})), &key).unwrap()
}

fn encoding_key(algorithm: Algorithm, pem: &str) -> EncodingKey {
    match algorithm {
        Algorithm::ES256 => EncodingKey::from_ec_pem(pem.as_bytes()),
        Algorithm::EdDSA => EncodingKey::from_ed_pem(pem.as_bytes()),
        _ => EncodingKey::from_rsa_pem(pem.as_bytes()),
    }
    .unwrap()
}

fn jwk(algorithm: Algorithm, pem: &str, id: Option<&str>) -> Value {
    let mut jwk = Jwk::from_encoding_key(&encoding_key(algorithm, pem), algorithm).unwrap();
    jwk.common.key_id = id.map(ToOwned::to_owned);
    serde_json::to_value(jwk).unwrap()
}

fn base64(text: &str) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk
            .iter()
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            encoded.push(char::from(alphabet[index as usize]));
        }
    }
    encoded
}

async fn hs256_door() -> Door {
    Door::open(KeySource::Hs256Secret, SECRET).await.unwrap()
}
