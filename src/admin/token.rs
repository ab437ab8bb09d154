//! The token that the admin port may ask for.

use std::fmt;

use subtle::ConstantTimeEq;

/// A secret; it is never shown.
#[derive(Clone)]
pub struct AdminToken(Box<[u8]>);

impl AdminToken {
    /// Takes the secret; none where it is empty, for that would let everyone in.
    pub fn new(secret: &str) -> Option<Self> {
        (!secret.is_empty()).then(|| Self(secret.as_bytes().into()))
    }

    /// Whether an `Authorization` header carries it. The time this takes tells nothing about
    /// the secret but its length.
    pub(super) fn is_carried_by(&self, authorization: Option<&[u8]>) -> bool {
        let carried = authorization.and_then(|value| {
            let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
            scheme
                .eq_ignore_ascii_case(b"Bearer ")
                .then(|| token.trim_ascii())
        });
        carried.is_some_and(|token| token.ct_eq(&self.0).into())
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_opens() {
        let token = AdminToken::new("s3cret").unwrap();
        for good in ["Bearer s3cret", "bearer  s3cret "] {
            assert!(token.is_carried_by(Some(good.as_bytes())), "{good}");
        }
        for bad in [
            "",
            "s3cret",
            "Bearer",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3cret2",
            "Basic s3cret",
        ] {
            assert!(!token.is_carried_by(Some(bad.as_bytes())), "{bad}");
        }
        assert!(!token.is_carried_by(None));
        assert!(AdminToken::new("").is_none());
    }

    #[test]
    fn the_secret_is_never_shown() {
        assert!(!format!("{:?}", AdminToken::new("s3cret")).contains("s3cret"));
    }
}
