//! What a token has to be.

use super::*;

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
