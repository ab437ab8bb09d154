#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use wow_kernel::error::Bound;
use wow_kernel::id::IdFault;
use wow_kernel::model::Rejection;

use super::*;

/// One of each variant. A new variant fails to compile in [`spec_status`] until it is added here.
fn every_error() -> Vec<CommandError> {
    use CommandError::*;
    let text = || "x".to_owned();
    vec![
        TypeUnknown { what: text() },
        IdentityConflict {
            fact: "tenant".into(),
            sources: text(),
        },
        IdentityInvalid {
            fact: "tenant".into(),
            fault: IdFault::Empty,
        },
        Unauthenticated,
        Denied,
        BodyInvalid {
            path: text(),
            reason: text(),
        },
        Invalid { errors: Vec::new() },
        BodyTooLarge { limit: 1 },
        ParameterInvalid {
            name: text(),
            reason: text(),
        },
        TransformerIdentity,
        RequestIdInvalid {
            fault: IdFault::Reserved,
        },
        RequestIdReused,
        AggregateExists,
        NotFound,
        Deleted,
        VersionNotReached { version: 1 },
        OtherOwner,
        OtherSpace,
        Reentrant { chain: text() },
        ChainTooDeep { max: 1 },
        Busy {
            bound: Bound::InFlight,
        },
        Timeout,
        Panicked,
        DecideTimeout,
        VersionMismatch {
            expected: 1,
            current: 2,
        },
        Conflict,
        OutcomeUnknown,
        StorageUnavailable,
        EventUnreadable,
        EventsTooLarge { bytes: 2, limit: 1 },
        Unwritable { reason: text() },
        Rejected(Rejection::new("account.frozen", "the account is frozen")),
        StageUnavailable { stage: text() },
        WaitTimeout,
        ShuttingDown,
        SenderMissing,
        Internal,
    ]
}

/// The status that spec/01 and spec/05 fix, and ours where they fix none.
fn spec_status(error: &CommandError) -> u16 {
    use CommandError::*;
    match error {
        TypeUnknown { .. } | NotFound => 404,
        IdentityConflict { .. } | IdentityInvalid { .. } | BodyInvalid { .. } | Invalid { .. } => {
            400
        }
        ParameterInvalid { .. } | RequestIdInvalid { .. } | VersionNotReached { .. } => 400,
        Rejected(_) | StageUnavailable { .. } => 400,
        Unauthenticated => 401,
        Denied | OtherOwner | OtherSpace => 403,
        RequestIdReused | AggregateExists | Reentrant { .. } | ChainTooDeep { .. } => 409,
        VersionMismatch { .. } | Conflict => 409,
        Deleted => 410,
        BodyTooLarge { .. } | EventsTooLarge { .. } => 413,
        Busy { .. } => 429,
        TransformerIdentity | Panicked | Unwritable { .. } | SenderMissing | Internal => 500,
        StorageUnavailable | EventUnreadable | ShuttingDown => 503,
        Timeout | DecideTimeout | OutcomeUnknown | WaitTimeout => 504,
    }
}

#[test]
fn every_error_has_the_status_of_the_contract_and_a_row_that_agrees() {
    for error in every_error() {
        let code = error.code();
        assert_eq!(status_of(&error).as_u16(), spec_status(&error), "{code}");
        if error.rejection_kind().is_none() {
            let row = find(&code).unwrap_or_else(|| panic!("{code} is missing in the table"));
            assert_eq!(row.retryable, error.is_retryable(), "{code}");
        }
    }
    let kinds = every_error()
        .iter()
        .map(std::mem::discriminant)
        .collect::<HashSet<_>>();
    assert_eq!(kinds.len(), every_error().len());
}

#[test]
fn r56_a_rejection_has_the_status_of_its_kind_and_the_domains_code() {
    for (kind, status) in [
        (RejectionKind::Invalid, 400),
        (RejectionKind::Forbidden, 403),
        (RejectionKind::NotFound, 404),
        (RejectionKind::Conflict, 409),
    ] {
        let rejection = Rejection::new("account.frozen", "the account is frozen").kind(kind);
        let refusal = Refusal::from(CommandError::Rejected(rejection));
        assert_eq!(refusal.status().as_u16(), status);
        assert_eq!(refusal.code(), "account.frozen");
        assert_eq!(refusal.to_string(), "the account is frozen");
        assert_eq!(refusal.retry_after(), None);
    }
}

#[test]
fn r31_r34_every_429_and_503_says_when_to_come_back() {
    for row in TABLE {
        let waits = matches!(row.status, 429 | 503);
        assert_eq!(row.retry_after.is_some(), waits, "{}", row.code);
        assert!(!waits || row.retryable, "{}", row.code);
    }
}

#[test]
fn the_table_has_each_code_once_in_the_shape_of_a_code() {
    let codes: HashSet<_> = TABLE.iter().map(|row| row.code).collect();
    assert_eq!(codes.len(), TABLE.len());
    for row in TABLE {
        let parts: Vec<_> = row.code.split('.').collect();
        let kebab = |part: &&str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
        };
        assert!(
            parts.len() == 3 && parts[0] == "wow" && parts.iter().all(kebab),
            "{}",
            row.code
        );
        assert!(StatusCode::from_u16(row.status).is_ok_and(|status| status.as_u16() >= 400));
        assert!(!row.advice.is_empty());
    }
}

#[test]
fn every_refusal_of_the_edge_is_in_the_table() {
    for (refusal, status) in [
        (Refusal::NotFound, 404),
        (
            Refusal::MethodNotAllowed {
                allow: "PUT".to_owned(),
            },
            405,
        ),
        (Refusal::UnsupportedMediaType, 415),
        (Refusal::PathInvalid, 400),
        (Refusal::UriTooLong { limit: 1 }, 414),
        (Refusal::HeadersTooLarge { limit: 1 }, 431),
        (Refusal::BodyTimeout, 408),
        (Refusal::BodyBroken, 400),
        (Refusal::NotReady, 503),
    ] {
        assert!(find(&refusal.code()).is_some(), "{refusal:?}");
        assert_eq!(refusal.status().as_u16(), status, "{refusal:?}");
    }
}
