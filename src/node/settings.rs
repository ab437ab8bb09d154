//! What each part is told, out of the configuration: none of them sees the whole of it.

use crate::access::{AccessSettings, ClaimNames, KeySource};
use crate::config::{AccessModeSetting, Config, LogFormat};
use crate::telemetry::{Format, TelemetrySettings};

/// What is logged, and how.
pub fn telemetry(config: &Config) -> TelemetrySettings {
    let format = config
        .telemetry
        .format
        .unwrap_or_else(|| match Format::of_standard_error() {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        });
    TelemetrySettings {
        // What these libraries tell is not about this node, and a client that sends what is no
        // HTTP must not fill the log with errors; a filter may still ask for all of it.
        filter: format!(
            "sea_orm_migration=warn,actix_server=warn,actix_http::h1::dispatcher=off,{}",
            config.telemetry.log.as_str()
        ),
        format: match format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        },
    }
}

/// A configuration that nobody checked: it asks for tokens and doesn't say how to verify them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("access.mode is \"jwt\" without issuer, audience and key file; load it to have it checked")]
pub struct AccessIncomplete;

/// How tokens are verified; none where callers are believed.
///
/// # Errors
/// [`AccessIncomplete`]: what is missing must never leave the door open.
pub fn access(config: &Config) -> Result<Option<AccessSettings>, AccessIncomplete> {
    let access = &config.access;
    if access.mode == AccessModeSetting::Open {
        return Ok(None);
    }
    let secret = access.hs256_secret_file.clone().map(KeySource::Hs256Secret);
    let jwks = access.jwks_file.clone().map(KeySource::Jwks);
    let pem = access.pem_file.clone().map(KeySource::Pem);
    Ok(Some(AccessSettings {
        issuer: access.issuer.clone().ok_or(AccessIncomplete)?,
        audience: access.audience.clone().ok_or(AccessIncomplete)?,
        keys: secret.or(jwks).or(pem).ok_or(AccessIncomplete)?,
        claims: ClaimNames {
            tenant: access.tenant_claim.clone(),
            roles: access.roles_claim.clone(),
            space: access.space_claim.clone(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unchecked_configuration_never_leaves_the_door_open() {
        let mut config = Config::default();
        assert_eq!(access(&config), Ok(None));
        config.access.mode = AccessModeSetting::Jwt;
        assert_eq!(access(&config), Err(AccessIncomplete));
        config.access.issuer = Some("https://id.example".to_owned());
        config.access.audience = Some("wow".to_owned());
        assert_eq!(access(&config), Err(AccessIncomplete));
        config.access.pem_file = Some("key.pem".into());
        let settings = access(&config)
            .expect("it is complete")
            .expect("it asks for tokens");
        assert_eq!(settings.keys, KeySource::Pem("key.pem".into()));
    }
}
