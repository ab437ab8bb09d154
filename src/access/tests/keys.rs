//! What a key file has to be, and how it is exchanged.

use super::*;

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
