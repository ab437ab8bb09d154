#![allow(clippy::unwrap_used, reason = "tests")]

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
const RSA: &str = include_str!("testdata/rsa.private.pem");
const RSA_PUBLIC: &str = include_str!("testdata/rsa.public.pem");
const RSA_NEXT: &str = include_str!("testdata/rsa-next.private.pem");
const RSA_NEXT_PUBLIC: &str = include_str!("testdata/rsa-next.public.pem");
const RSA_1024_PUBLIC: &str = include_str!("testdata/rsa-1024.public.pem");
const EC: &str = include_str!("testdata/ec.private.pem");
const EC_PUBLIC: &str = include_str!("testdata/ec.public.pem");
const EC_P384_PUBLIC: &str = include_str!("testdata/ec-p384.public.pem");
const ED: &str = include_str!("testdata/ed.private.pem");
const ED_PUBLIC: &str = include_str!("testdata/ed.public.pem");

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

#[tokio::test]
async fn a_token_becomes_a_principal() {
    let door = hs256_door().await;
    let token = hs256(json!({
        "tenant_id": "acme", "space_id": "eu", "roles": ["shipper", "auditor"], "nbf": 1,
    }));
    let principal = door.verifier.verify(&token).await.unwrap();
    assert_eq!(principal.subject_text(), "alice");
    assert_eq!(principal.tenant.as_deref(), Some("acme"));
    assert_eq!(principal.space.as_deref(), Some("eu"));
    assert!(principal.has_role("shipper") && principal.has_role("auditor"));
    let bare = door
        .verifier
        .verify(&hs256(json!({"roles": "a  service"})))
        .await
        .unwrap();
    assert_eq!((bare.tenant.clone(), bare.space.clone()), (None, None));
    assert!(bare.is_service());
}

#[tokio::test]
async fn a_nested_claim_is_found_by_a_pointer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, format!("{SECRET}\n")).unwrap();
    let mut settings = settings(KeySource::Hs256Secret(path));
    settings.claims.roles = "/realm_access/roles".to_owned();
    let verifier = Verifier::open(settings, Arc::new(Hand::default()))
        .await
        .unwrap();
    let token = hs256(json!({"realm_access": {"roles": ["shipper"]}, "roles": ["service"]}));
    let principal = verifier.verify(&token).await.unwrap();
    assert!(principal.has_role("shipper") && !principal.is_service());
}

#[tokio::test]
async fn an_expired_token_is_refused_after_30_seconds_of_leeway() {
    let door = hs256_door().await;
    let now = get_current_timestamp();
    assert_eq!(
        door.refusal(&hs256(json!({"exp": now - 60}))).await,
        TokenError::Expired
    );
    assert!(
        door.verifier
            .verify(&hs256(json!({"exp": now - 10})))
            .await
            .is_ok()
    );
    assert_eq!(
        door.refusal(&hs256(json!({"nbf": now + 90}))).await,
        TokenError::NotYetValid
    );
    assert!(
        door.verifier
            .verify(&hs256(json!({"nbf": now + 10})))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_token_for_others_or_by_others_is_refused() {
    let door = hs256_door().await;
    for audience in [json!("other"), json!(["other", "wow2"]), json!("")] {
        let token = hs256(json!({ "aud": audience }));
        assert_eq!(door.refusal(&token).await, TokenError::AudienceWrong);
    }
    assert!(
        door.verifier
            .verify(&hs256(json!({"aud": ["other", "wow"]})))
            .await
            .is_ok()
    );
    let token = hs256(json!({"iss": "https://evil.example"}));
    assert_eq!(door.refusal(&token).await, TokenError::IssuerWrong);
}

#[tokio::test]
async fn a_token_without_a_needed_claim_is_refused() {
    let door = hs256_door().await;
    for claim in ["sub", "iss", "aud", "exp"] {
        let token = hs256(json!({ claim: null }));
        let missing = TokenError::ClaimMissing {
            claim: claim.to_owned(),
        };
        assert_eq!(door.refusal(&token).await, missing);
    }
}

#[tokio::test]
async fn a_claim_of_the_wrong_form_is_refused_and_never_taken_for_none() {
    let door = hs256_door().await;
    for (claim, value) in [
        ("sub", json!("")),
        ("tenant_id", json!("")),
        ("tenant_id", json!(7)),
        ("tenant_id", json!(["a"])),
        ("space_id", json!({})),
        ("roles", json!([1])),
        ("roles", json!({"admin": true})),
        ("nbf", json!("soon")),
    ] {
        let token = hs256(json!({ claim: value }));
        let invalid = TokenError::ClaimInvalid {
            claim: claim.to_owned(),
        };
        assert_eq!(door.refusal(&token).await, invalid, "{claim}");
    }
}

#[tokio::test]
async fn a_token_signed_with_another_key_is_refused() {
    let door = hs256_door().await;
    let key = EncodingKey::from_secret(b"another secret of more than 32 bytes").unwrap();
    let token = encode(&Header::new(Algorithm::HS256), &claims(json!({})), &key).unwrap();
    assert_eq!(door.refusal(&token).await, TokenError::SignatureInvalid);
    let door = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    let token = signed(Algorithm::RS256, RSA_NEXT, None);
    assert_eq!(door.refusal(&token).await, TokenError::SignatureInvalid);
}

#[tokio::test]
async fn a_token_changed_in_any_part_is_refused() {
    let door = hs256_door().await;
    let token = hs256(json!({}));
    let parts: Vec<_> = token.split('.').collect();
    let claims = base64(&claims(json!({"sub": "mallory"})).to_string());
    let changed = format!("{}.{claims}.{}", parts[0], parts[2]);
    assert_eq!(door.refusal(&changed).await, TokenError::SignatureInvalid);
    let unsigned = format!("{}.{}.", parts[0], parts[1]);
    assert_eq!(door.refusal(&unsigned).await, TokenError::SignatureInvalid);
    for broken in ["", ".", "..", "a.b.c", "a.b.c.d", parts[0], &token[1..]] {
        assert_eq!(
            door.refusal(broken).await,
            TokenError::Malformed,
            "{broken}"
        );
    }
    let long = format!("{token}{}", "a".repeat(TOKEN_BYTES_MAX));
    assert_eq!(
        door.refusal(&long).await,
        TokenError::TooLong {
            limit: TOKEN_BYTES_MAX
        }
    );
}

#[tokio::test]
async fn the_algorithm_none_is_refused() {
    for door in [
        hs256_door().await,
        Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap(),
    ] {
        for none in ["none", "None", "NONE", "nOnE", ""] {
            let header = base64(&json!({"alg": none, "typ": "JWT"}).to_string());
            let body = base64(&claims(json!({})).to_string());
            for signature in ["", "AA", &base64(SECRET)] {
                let token = format!("{header}.{body}.{signature}");
                assert_eq!(door.refusal(&token).await, TokenError::Malformed, "{none}");
            }
        }
    }
}

#[tokio::test]
async fn a_public_key_is_never_taken_for_a_secret() {
    // The classic confusion: HS256 "signed" with the text of the public RSA key.
    let key = EncodingKey::from_secret(RSA_PUBLIC.as_bytes()).unwrap();
    let forged = encode(&Header::new(Algorithm::HS256), &claims(json!({})), &key).unwrap();
    let pem = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    assert_eq!(pem.refusal(&forged).await, TokenError::AlgorithmRefused);
    let set = json!({"keys": [jwk(Algorithm::RS256, RSA, None)]}).to_string();
    let jwks = Door::open(KeySource::Jwks, &set).await.unwrap();
    assert_eq!(jwks.refusal(&forged).await, TokenError::AlgorithmRefused);
    let secret = hs256_door().await;
    let rs256 = signed(Algorithm::RS256, RSA, None);
    assert_eq!(secret.refusal(&rs256).await, TokenError::AlgorithmRefused);
}

#[tokio::test]
async fn a_token_of_another_algorithm_of_the_same_key_is_refused() {
    let door = hs256_door().await;
    let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        let token = encode(&Header::new(algorithm), &claims(json!({})), &key).unwrap();
        assert_eq!(door.refusal(&token).await, TokenError::AlgorithmRefused);
    }
    let door = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    for algorithm in [Algorithm::RS512, Algorithm::PS256] {
        assert_eq!(
            door.refusal(&signed(algorithm, RSA, None)).await,
            TokenError::AlgorithmRefused
        );
    }
}

#[tokio::test]
async fn a_header_that_brings_its_own_key_changes_nothing() {
    let door = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    let own = Jwk::from_encoding_key(&encoding_key(Algorithm::RS256, RSA_NEXT), Algorithm::RS256);
    let header = Header {
        jwk: Some(own.unwrap()),
        jku: Some("https://evil.example/keys".to_owned()),
        ..Header::new(Algorithm::RS256)
    };
    let key = encoding_key(Algorithm::RS256, RSA_NEXT);
    let token = encode(&header, &claims(json!({})), &key).unwrap();
    assert_eq!(door.refusal(&token).await, TokenError::SignatureInvalid);
}

#[tokio::test]
async fn rs256_es256_and_eddsa_tokens_are_verified_by_pem_and_by_jwk() {
    for (algorithm, private, public) in [
        (Algorithm::RS256, RSA, RSA_PUBLIC),
        (Algorithm::ES256, EC, EC_PUBLIC),
        (Algorithm::EdDSA, ED, ED_PUBLIC),
    ] {
        let pem = Door::open(KeySource::Pem, public).await.unwrap();
        let token = signed(algorithm, private, Some("any"));
        assert_eq!(
            pem.verifier.verify(&token).await.unwrap().subject_text(),
            "alice"
        );
        let set = json!({"keys": [jwk(algorithm, private, Some("k1"))]}).to_string();
        let jwks = Door::open(KeySource::Jwks, &set).await.unwrap();
        for id in [None, Some("k1")] {
            assert!(
                jwks.verifier
                    .verify(&signed(algorithm, private, id))
                    .await
                    .is_ok()
            );
        }
        let unknown = signed(algorithm, private, Some("k2"));
        assert_eq!(jwks.refusal(&unknown).await, TokenError::KeyUnknown);
    }
}

#[tokio::test]
async fn of_several_keys_the_one_that_signed_is_found() {
    let set = json!({"keys": [
        jwk(Algorithm::ES256, EC, Some("ec")),
        jwk(Algorithm::RS256, RSA, Some("one")),
        jwk(Algorithm::RS256, RSA_NEXT, Some("two")),
    ]});
    let door = Door::open(KeySource::Jwks, &set.to_string()).await.unwrap();
    for (key, id) in [(RSA, "one"), (RSA_NEXT, "two")] {
        assert!(
            door.verifier
                .verify(&signed(Algorithm::RS256, key, Some(id)))
                .await
                .is_ok()
        );
        assert!(
            door.verifier
                .verify(&signed(Algorithm::RS256, key, None))
                .await
                .is_ok()
        );
    }
    let crossed = signed(Algorithm::RS256, RSA, Some("two"));
    assert_eq!(door.refusal(&crossed).await, TokenError::SignatureInvalid);
}

#[tokio::test]
async fn a_rotated_key_file_is_read_within_a_second() {
    let door = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    let old = signed(Algorithm::RS256, RSA, None);
    let new = signed(Algorithm::RS256, RSA_NEXT, None);
    assert_eq!(door.refusal(&new).await, TokenError::SignatureInvalid);
    door.rotate(RSA_NEXT_PUBLIC);
    assert!(door.verifier.verify(&new).await.is_ok());
    assert_eq!(door.refusal(&old).await, TokenError::SignatureInvalid);
}

#[tokio::test]
async fn the_file_is_looked_at_once_a_second_at_most() {
    let door = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    let new = signed(Algorithm::RS256, RSA_NEXT, None);
    fs::write(door.file(), RSA_NEXT_PUBLIC).unwrap();
    door.clock.advance(Duration::from_millis(999));
    assert_eq!(door.refusal(&new).await, TokenError::SignatureInvalid);
    door.clock.advance(Duration::from_millis(1));
    assert!(door.verifier.verify(&new).await.is_ok());
}

#[tokio::test]
async fn a_rotation_that_went_wrong_leaves_the_old_keys_in_force_until_it_is_mended() {
    let door = Door::open(KeySource::Pem, RSA_PUBLIC).await.unwrap();
    let old = signed(Algorithm::RS256, RSA, None);
    door.rotate("no key at all");
    assert!(door.verifier.verify(&old).await.is_ok());
    fs::remove_file(door.file()).unwrap();
    door.clock.advance(Duration::from_secs(1));
    assert!(door.verifier.verify(&old).await.is_ok());
    door.rotate(RSA_NEXT_PUBLIC);
    assert!(
        door.verifier
            .verify(&signed(Algorithm::RS256, RSA_NEXT, None))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn a_file_that_gives_no_safe_key_is_refused_at_the_start() {
    type Source = fn(PathBuf) -> KeySource;
    let oct = json!({"keys": [{"kty": "oct", "k": base64(SECRET)}]}).to_string();
    let encryption = {
        let mut jwk = jwk(Algorithm::RS256, RSA, None);
        jwk["use"] = json!("enc");
        json!({ "keys": [jwk] }).to_string()
    };
    let many = json!({"keys": vec![jwk(Algorithm::EdDSA, ED, None); 33]}).to_string();
    let cases: [(Source, &str, &str); 12] = [
        (KeySource::Hs256Secret, "hunter2", "shorter than 32 bytes"),
        (KeySource::Hs256Secret, "", "shorter than 32 bytes"),
        (KeySource::Jwks, "{}", "is no JWK set"),
        (KeySource::Jwks, "not json", "is no JWK set"),
        (KeySource::Jwks, "{\"keys\":[]}", "holds no key"),
        (KeySource::Jwks, &oct, "holds no key"),
        (KeySource::Jwks, &encryption, "holds no key"),
        (KeySource::Jwks, &many, "more than 32 keys"),
        (KeySource::Pem, RSA, "holds a private key"),
        (KeySource::Pem, RSA_1024_PUBLIC, "is no public key"),
        (KeySource::Pem, EC_P384_PUBLIC, "is no public key"),
        (
            KeySource::Pem,
            "-----BEGIN PUBLIC KEY-----",
            "is no public key",
        ),
    ];
    for (source, content, expected) in cases {
        let error = Door::open(source, content).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(content.is_empty() || !error.contains(content), "{error}");
    }
    let absent = settings(KeySource::Pem(Path::new("/nowhere/key.pem").to_owned()));
    let error = Verifier::open(absent, Arc::new(Hand::default()))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the key file /nowhere/key.pem can't be read")
    );
}

#[tokio::test]
async fn no_message_holds_anything_of_the_token() {
    let door = hs256_door().await;
    let hidden = "s3cr3t-m4rk3r";
    for changes in [
        json!({"sub": hidden, "exp": 1}),
        json!({"sub": hidden, "iss": hidden}),
        json!({"sub": hidden, "aud": hidden}),
        json!({"tenant_id": [hidden]}),
        json!({"roles": {hidden: hidden}}),
        json!({"nbf": hidden}),
    ] {
        let refusal = door.refusal(&hs256(changes)).await;
        assert!(
            !format!("{refusal} {refusal:?}").contains(hidden),
            "{refusal:?}"
        );
    }
    let refusal = door.refusal(&format!("{hidden}.{hidden}.{hidden}")).await;
    assert!(!format!("{refusal} {refusal:?}").contains(hidden));
}

#[test]
fn whoever_proves_nothing_is_told_to_authenticate() {
    assert_eq!(
        AccessError::from(TokenError::Expired),
        AccessError::Unauthenticated
    );
}
