//! Which aggregate a request is about, for which owner and in which space (R3).
//!
//! Each fact has its sources. All that are present must agree byte for byte; an empty one is
//! refused, for it never means "no filter". Where none is present, the command or commit that
//! caused the request may stand in. Commands and reads are resolved here alike.

use std::borrow::Cow;

use crate::access::{AccessMode, Principal};
use crate::error::CommandError;
use crate::id::{AggregateId, AggregateKey, IdFault, Identity, OwnerId, SpaceId, TenantId};
use crate::model::{AccessRule, OwnerPolicy};
use crate::registry::AggregateDefinition;
use crate::submission::{IdentityFacts, Source};

const TENANT: &str = "tenant";
const OWNER: &str = "owner";
const SPACE: &str = "space";
const AGGREGATE_ID: &str = "aggregate id";

/// What a command's marked field says of the aggregate id.
#[derive(Debug)]
pub(crate) enum MarkedId<'a> {
    /// No field is marked, or it isn't there.
    Absent,
    /// The body can't be read, which the decoding step will say: after access was judged.
    Unreadable,
    /// The id.
    Present(Cow<'a, str>),
}

/// What the identity of a request is made from.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The type of the aggregate.
    pub(crate) aggregate: &'a AggregateDefinition,
    /// Who may send the command, or read.
    pub(crate) rule: AccessRule,
    /// How callers are known.
    pub(crate) mode: AccessMode,
    /// Who calls.
    pub(crate) principal: &'a Principal,
    /// What path, headers and the caller's code say.
    pub(crate) facts: &'a IdentityFacts,
    /// What the field says that the command marks.
    pub(crate) marked: MarkedId<'a>,
    /// The path or header variable that fills this field, where one does.
    pub(crate) marked_variable: Option<(Source, &'a str)>,
    /// Whether the request may come without an id, to get one from admission (R12).
    pub(crate) may_lack_id: bool,
}

/// Resolves a request's identity. Its id is empty where it [`Request::may_lack_id`], and where
/// the body that should have named it is [`MarkedId::Unreadable`].
///
/// # Errors
/// [`CommandError::IdentityConflict`] names the fact and its sources, never what they say;
/// [`CommandError::IdentityInvalid`] where a fact is no id, or missing.
pub(crate) fn resolve(request: &Request<'_>) -> Result<Identity, CommandError> {
    let tenant = tenant(request)?;
    let owner = owner(request)?;
    let space = space(request)?;
    let id = aggregate_id(request, owner.as_ref())?;
    let is_unreadable = matches!(request.marked, MarkedId::Unreadable);
    let owner = match (request.aggregate.spec.owner, owner) {
        (_, Some(owner)) => owner,
        (OwnerPolicy::AggregateId, None) if id.is_some() => {
            OwnerId::trusted(id.as_ref().map_or("", AggregateId::as_str))
        }
        (OwnerPolicy::Never, None) => OwnerId::none(),
        (OwnerPolicy::AggregateId, None) if is_unreadable => OwnerId::none(),
        (OwnerPolicy::Always | OwnerPolicy::AggregateId, None) => return Err(missing(OWNER)),
    };
    let id = match id {
        Some(id) => id,
        None if request.may_lack_id || is_unreadable => AggregateId::trusted(""),
        None => return Err(missing(AGGREGATE_ID)),
    };
    let aggregate_type = request.aggregate.aggregate_type.clone();
    Ok(Identity {
        key: AggregateKey {
            tenant,
            aggregate_type,
            id,
        },
        owner,
        space,
    })
}

/// The error of a request that needs an id and has none.
pub(crate) fn id_missing() -> CommandError {
    missing(AGGREGATE_ID)
}

/// The error of a command whose decoded id is another than the identity step found.
pub(crate) fn id_changed_by_decoding() -> CommandError {
    CommandError::IdentityConflict {
        fact: AGGREGATE_ID.into(),
        sources: "the request and the field read from it".to_owned(),
    }
}

fn tenant(request: &Request<'_>) -> Result<TenantId, CommandError> {
    let of_type = request
        .aggregate
        .spec
        .static_tenant
        .map(|tenant| (Source::Type, tenant));
    // A type with one tenant is shared by the callers of all: their own is not meant here.
    let claim = token_claim(request.principal, request.principal.tenant.as_deref())
        .filter(|_| of_type.is_none());
    let sources = of_type
        .into_iter()
        .chain(given(&request.facts.tenant))
        .chain(claim);
    match (agreed(TENANT, sources)?, &request.aggregate.static_tenant) {
        // It was checked when the type was registered, and is the same text for all.
        (Some(_), Some(tenant)) => Ok(tenant.clone()),
        (Some(text), None) => TenantId::parse(text).map_err(|fault| invalid(TENANT, fault)),
        (None, _) => Ok(match &request.facts.cause {
            Some(cause) => cause.key.tenant.clone(),
            None => TenantId::default_tenant(),
        }),
    }
}

fn owner(request: &Request<'_>) -> Result<Option<OwnerId>, CommandError> {
    let named = given(&request.facts.owner);
    let subject = match subject_as_owner(request) {
        Subject::IsNoSource => None,
        Subject::MustAgree(subject) => Some(subject),
        Subject::StandsIn(subject) => {
            let is_named = !request.facts.owner.is_empty()
                || cause_owner(request).is_some()
                || (request.aggregate.owner_is_id() && named_ids(request).next().is_some());
            (!is_named).then_some(subject)
        }
    };
    let sources = named.chain(subject.map(|subject| (Source::TokenSubject, subject)));
    match agreed(OWNER, sources)? {
        Some(text) => OwnerId::parse(text)
            .map(Some)
            .map_err(|fault| invalid(OWNER, fault)),
        None => Ok(cause_owner(request).cloned()),
    }
}

/// The owner for whom the cause was sent, where the type's aggregates have owners. Where the
/// owner is the id it doesn't stand in: that would name the aggregate, too.
fn cause_owner<'a>(request: &Request<'a>) -> Option<&'a OwnerId> {
    let cause = request.facts.cause.as_ref()?;
    let has_owner = request.aggregate.spec.owner == OwnerPolicy::Always && !cause.owner.is_empty();
    has_owner.then_some(&cause.owner)
}

fn space(request: &Request<'_>) -> Result<SpaceId, CommandError> {
    let claim = token_claim(request.principal, request.principal.space.as_deref());
    match agreed(SPACE, given(&request.facts.space).chain(claim))? {
        Some(text) => SpaceId::parse(text).map_err(|fault| invalid(SPACE, fault)),
        None => Ok(match &request.facts.cause {
            Some(cause) => cause.space.clone(),
            None => SpaceId::none(),
        }),
    }
}

fn aggregate_id(
    request: &Request<'_>,
    owner: Option<&OwnerId>,
) -> Result<Option<AggregateId>, CommandError> {
    let owner = owner
        .filter(|_| request.aggregate.owner_is_id())
        .map(|owner| (Source::Owner, owner.as_str()));
    agreed(AGGREGATE_ID, named_ids(request).chain(owner))?
        .map(|text| AggregateId::parse(text).map_err(|fault| invalid(AGGREGATE_ID, fault)))
        .transpose()
}

/// Whatever names the id itself.
fn named_ids<'a>(request: &'a Request<'_>) -> impl Iterator<Item = (Source, &'a str)> + Clone + 'a {
    let marked = match &request.marked {
        MarkedId::Present(text) => Some((Source::Body, &**text)),
        MarkedId::Absent | MarkedId::Unreadable => None,
    };
    given(&request.facts.aggregate_id)
        .chain(request.marked_variable)
        .chain(marked)
}

/// What a token's subject says of the owner.
enum Subject<'a> {
    /// Nothing.
    IsNoSource,
    /// It is the owner, and whatever else names one has to say the same.
    MustAgree(&'a str),
    /// It is the owner where nothing else names one.
    StandsIn(&'a str),
}

fn subject_as_owner<'a>(request: &Request<'a>) -> Subject<'a> {
    let has_owners = request.aggregate.spec.owner != OwnerPolicy::Never;
    match (request.mode, request.principal.subject.as_deref()) {
        (AccessMode::Open, _) | (_, None) => Subject::IsNoSource,
        (AccessMode::Jwt, Some(_)) if request.principal.is_service() => Subject::IsNoSource,
        (AccessMode::Jwt, Some(_)) if !has_owners => Subject::IsNoSource,
        (AccessMode::Jwt, Some(subject)) => match request.rule {
            // These say who else than the owner may act, so such a caller can name the owner:
            // whoever ships an order is not who placed it.
            AccessRule::Roles(_) | AccessRule::Policy(_) => Subject::StandsIn(subject),
            AccessRule::Default
            | AccessRule::Public
            | AccessRule::Authenticated
            | AccessRule::Owner => Subject::MustAgree(subject),
        },
    }
}

/// A claim of the caller's token. A service may act for anyone, so its own claims say nothing
/// of whom it acts for.
fn token_claim<'a>(principal: &Principal, claim: Option<&'a str>) -> Option<(Source, &'a str)> {
    claim
        .filter(|_| !principal.is_service())
        .map(|text| (Source::TokenClaim, text))
}

fn given(fact: &[(Source, String)]) -> impl Iterator<Item = (Source, &str)> + Clone {
    fact.iter().map(|(source, text)| (*source, text.as_str()))
}

/// The one value that all sources have; none where there is no source.
fn agreed<'a>(
    fact: &'static str,
    sources: impl Iterator<Item = (Source, &'a str)> + Clone,
) -> Result<Option<&'a str>, CommandError> {
    let mut agreed: Option<&str> = None;
    let mut is_conflict = false;
    for (_, text) in sources.clone() {
        if text.is_empty() {
            return Err(missing(fact));
        }
        is_conflict |= agreed.is_some_and(|earlier| earlier != text);
        agreed = Some(text);
    }
    if is_conflict {
        let sources: Vec<_> = sources.map(|(source, _)| source.to_string()).collect();
        return Err(CommandError::IdentityConflict {
            fact: fact.into(),
            sources: sources.join(", "),
        });
    }
    Ok(agreed)
}

fn missing(fact: &'static str) -> CommandError {
    invalid(fact, IdFault::Empty)
}

fn invalid(fact: &'static str, fault: IdFault) -> CommandError {
    CommandError::IdentityInvalid {
        fact: fact.into(),
        fault,
    }
}
