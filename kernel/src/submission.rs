//! A request on its way into admission: everything an entry point knows, nothing decided yet.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::access::Principal;
use crate::command::{BuiltCommand, CallChain, Payload};
use crate::commit::{Headers, TRACE_HEADERS};
use crate::id::{Identity, RequestId, Version};
use crate::model::{Command, VariableSource};
use crate::saga::DEPTH_HEADER;
use crate::wait::{Stage, WaitPlan};

/// Where an identity fact comes from (R3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The type's static tenant.
    Type,
    /// The path.
    Path,
    /// A header.
    Header,
    /// A claim of the token.
    TokenClaim,
    /// The token's subject.
    TokenSubject,
    /// The marked field of the body.
    Body,
    /// The owner, where the owner is the id.
    Owner,
    /// The caller's own code.
    Call,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Type => "the type's static tenant",
            Self::Path => "path",
            Self::Header => "header",
            Self::TokenClaim => "token claim",
            Self::TokenSubject => "token subject",
            Self::Body => "body field",
            Self::Owner => "owner",
            Self::Call => "call",
        })
    }
}

/// What the sources say of each identity fact. All that are present must agree (R3).
#[derive(Debug, Clone, Default)]
pub struct IdentityFacts {
    /// Tenant.
    pub tenant: Vec<(Source, String)>,
    /// Owner.
    pub owner: Vec<(Source, String)>,
    /// Space.
    pub space: Vec<(Source, String)>,
    /// Aggregate id.
    pub aggregate_id: Vec<(Source, String)>,
    /// The identity of the command or commit that caused the request. It stands in for a tenant
    /// and a space that nothing names, and for the owner where the type has owners.
    pub cause: Option<Box<Identity>>,
}

/// Which command type a request names (R2).
#[derive(Debug, Clone)]
pub enum Target {
    /// By names; the aggregate may be left out where the command's name is unique.
    Named {
        /// The aggregate's context; the node's own where none.
        context: Option<String>,
        /// The aggregate type.
        aggregate: Option<String>,
        /// The command type.
        command: String,
    },
    /// By the Rust type.
    Typed(TypeId),
}

/// The body of a request.
#[derive(Clone)]
pub enum Body {
    /// JSON from outside.
    Json(Bytes),
    /// A command of the process's own.
    Typed(Payload),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(bytes) => write!(f, "Json({} bytes)", bytes.len()),
            Self::Typed(_) => f.write_str("Typed"),
        }
    }
}

/// A path or header variable that the entry point found (spec/03).
#[derive(Debug, Clone)]
pub struct VariableValue {
    /// Where it was found.
    pub source: VariableSource,
    /// The name of the segment or header.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// Which of the node's command permits an entry point draws on (R31).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PermitClass {
    /// All but the reserve.
    #[default]
    Caller,
    /// All of them: sagas and forwarded commands.
    Internal,
}

/// The request id a submission carries.
#[derive(Debug, Clone)]
pub enum SubmittedRequestId {
    /// From a caller, still unchecked (R8).
    Caller(String),
    /// Derived by the system, and so reserved for it (R83).
    System(RequestId),
}

/// A request, as any entry point hands it to admission. Every entry point admits the same way.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Which command type.
    pub target: Target,
    /// What the sources say of the identity.
    pub facts: IdentityFacts,
    /// The body.
    pub body: Body,
    /// Path and header variables.
    pub variables: Vec<VariableValue>,
    /// The request id, if one came along.
    pub request_id: Option<SubmittedRequestId>,
    /// The version the caller expects.
    pub expected_version: Option<Version>,
    /// What the caller waits for.
    pub wait: WaitPlan,
    /// Headers to keep.
    pub headers: Headers,
    /// Who calls.
    pub principal: Principal,
    /// The commands that led here.
    pub chain: CallChain,
    /// Which permits it draws on.
    pub permits: PermitClass,
    /// `false` where the caller won't have it run here while its owner can be reached; where it
    /// says nothing, R21 decides.
    pub local_first: Option<bool>,
}

/// Adds what the caller's own code says of a fact: the only thing that is said, in most cases.
fn say(fact: &mut Vec<(Source, String)>, text: String) {
    if fact.is_empty() {
        *fact = vec![(Source::Call, text)];
    } else {
        fact.push((Source::Call, text));
    }
}

impl Submission {
    fn new(target: Target, body: Body) -> Self {
        Self {
            target,
            facts: IdentityFacts::default(),
            body,
            variables: Vec::new(),
            request_id: None,
            expected_version: None,
            wait: WaitPlan::default(),
            headers: Headers::new(),
            principal: Principal::anonymous(),
            chain: CallChain::default(),
            permits: PermitClass::Caller,
            local_first: None,
        }
    }

    /// A command of the process's own.
    pub fn typed<C: Command>(command: C) -> Self {
        Self::new(
            Target::Typed(TypeId::of::<C>()),
            Body::Typed(Arc::new(command)),
        )
    }

    /// A command whose type is known only at run time.
    pub fn erased(payload_type: TypeId, payload: Payload) -> Self {
        Self::new(Target::Typed(payload_type), Body::Typed(payload))
    }

    /// A JSON body for a command of an aggregate type.
    pub fn json(aggregate: &str, command: &str, body: impl Into<Bytes>) -> Self {
        let target = Target::Named {
            context: None,
            aggregate: Some(aggregate.to_owned()),
            command: command.to_owned(),
        };
        Self::new(target, Body::Json(body.into()))
    }

    /// A JSON body for whatever the names say.
    pub fn named(target: Target, body: impl Into<Bytes>) -> Self {
        Self::new(target, Body::Json(body.into()))
    }

    /// Names the aggregate.
    #[must_use]
    pub fn aggregate_id(mut self, id: impl Into<String>) -> Self {
        say(&mut self.facts.aggregate_id, id.into());
        self
    }

    /// Names the tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        say(&mut self.facts.tenant, tenant.into());
        self
    }

    /// Names the owner.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        say(&mut self.facts.owner, owner.into());
        self
    }

    /// Names the space.
    #[must_use]
    pub fn space(mut self, space: impl Into<String>) -> Self {
        say(&mut self.facts.space, space.into());
        self
    }

    /// Names the request.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = Some(SubmittedRequestId::Caller(id.into()));
        self
    }

    /// Expects a version (R53).
    #[must_use]
    pub fn expected_version(mut self, version: Version) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Waits for a stage.
    #[must_use]
    pub fn wait(mut self, stage: Stage) -> Self {
        self.wait.stage = stage;
        self
    }

    /// Waits at most this long.
    #[must_use]
    pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
        self.wait.timeout = timeout;
        self
    }

    /// Sends as this caller.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    /// Keeps a header with the commit.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sends as part of deciding another command: its caller, its chain, its trace, the reserve
    /// of permits, and its identity where this names none of its own.
    #[must_use]
    pub fn follows(mut self, cause: &BuiltCommand) -> Self {
        let mut chain: Vec<_> = cause.chain.to_vec();
        chain.push(cause.key().clone());
        self.chain = chain.into();
        self.principal = cause.principal.clone();
        self.permits = PermitClass::Internal;
        self.wait.stage = Stage::Processed;
        self.facts.cause = Some(Box::new(cause.identity.clone()));
        // A loop of sagas is one too where command functions lie between them (R83).
        self.headers.remove(DEPTH_HEADER);
        self.keeping(&cause.headers, &[DEPTH_HEADER])
            .traced_by(&cause.headers)
    }

    /// Carries the trace context of what caused this, unless it has one of its own.
    #[must_use]
    pub(crate) fn traced_by(self, headers: &Headers) -> Self {
        match self.headers.contains_key("traceparent") {
            true => self,
            false => self.keeping(headers, &TRACE_HEADERS),
        }
    }

    fn keeping(mut self, headers: &Headers, names: &[&str]) -> Self {
        let kept = names.iter().filter_map(|name| headers.get_key_value(*name));
        self.headers
            .extend(kept.map(|(name, value)| (name.clone(), value.clone())));
        self
    }
}
