//! Admission's rules, R1 to R13, over a small domain written against the traits by hand.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

mod body;
mod build;
mod identity;
mod steps;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::*;
use crate::commit::{Commit, Headers};
use crate::id::{
    AggregateId, AggregateKey, AggregateType, CommandId, EpochMillis, OwnerId, PartitionNo,
    RequestId, SpaceId, TenantId,
};
use crate::model::{
    AccessRule, Aggregate, AggregateSpec, BindingError, Command, CommandSet, CommandSpec, Decide,
    DecideContext, Decision, Event, EventSpec, Evolve, OwnerPolicy, Rejection, Variable,
    VariableSource,
};
use crate::ports::StorageError;
use crate::registry::RegistryBuilder;

#[derive(Clone)]
pub(super) enum Nothing {}

impl Event for Nothing {
    fn specs() -> &'static [EventSpec] {
        &[]
    }

    fn index(&self) -> usize {
        match *self {}
    }

    fn encode(&self) -> Result<Box<RawValue>, serde_json::Error> {
        match *self {}
    }

    fn decode(_index: usize, _body: &RawValue) -> Result<Self, serde_json::Error> {
        Err(serde::de::Error::custom("there are no events"))
    }
}

/// Declares aggregate types that differ in their identity rules alone.
macro_rules! aggregates {
    ($($name:ident: $spec:expr;)*) => {$(
        #[derive(Default, Clone, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name {}

        impl Evolve for $name {
            type Event = Nothing;

            fn evolve(&mut self, event: &Nothing) {
                match *event {}
            }
        }

        impl<C: Command> Decide<C> for $name {
            async fn decide(
                &self,
                _command: &C,
                _context: &DecideContext,
            ) -> Result<Decision<Nothing>, Rejection> {
                Ok(Decision::none())
            }
        }

        impl Aggregate for $name {
            fn spec() -> AggregateSpec {
                $spec
            }

            fn commands(set: &mut CommandSet<Self>) {
                set.add::<Open>();
                set.add::<Change>();
                set.add::<Put>();
                set.add::<Keep>();
                set.add::<Fill>();
                set.add::<Ping>();
                set.add::<Seal>();
                set.add::<Ship>();
                set.add::<Look>();
                set.add::<Inspect>();
                set.add::<Explode>();
            }
        }
    )*};
}

aggregates! {
    Ownerless: AggregateSpec::new("ownerless");
    Owned: AggregateSpec { owner: OwnerPolicy::Always, ..AggregateSpec::new("owned") };
    Personal: AggregateSpec { owner: OwnerPolicy::AggregateId, ..AggregateSpec::new("personal") };
    Fixed: AggregateSpec { static_tenant: Some("(0)"), ..AggregateSpec::new("fixed") };
}

/// Creates; its id may be named by the caller, and it has rules of its own.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Open {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    amount: i64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    items: Option<Vec<Item>>,
}

impl Command for Open {
    fn spec() -> CommandSpec {
        let spec = CommandSpec::new("open");
        CommandSpec {
            creation: CreationRule::Creates,
            id_field: Some("id"),
            ..spec
        }
    }

    fn validate(&self) -> Vec<BindingError> {
        let mut errors = Vec::new();
        if self.amount < 0 {
            errors.push(BindingError::new("amount", "must not be negative"));
        }
        if self.name == "nobody" {
            errors.push(BindingError::new("name", "must be somebody"));
        }
        errors
    }

    fn aggregate_id(&self) -> Option<String> {
        self.id.clone()
    }
}

/// Updates; a UUID of the body names the aggregate.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Change {
    #[schemars(with = "String")]
    id: Uuid,
}

impl Command for Change {
    fn spec() -> CommandSpec {
        CommandSpec {
            id_field: Some("id"),
            ..CommandSpec::new("change")
        }
    }

    fn aggregate_id(&self) -> Option<String> {
        Some(self.id.to_string())
    }
}

/// Upserts and keeps what it is given, whatever it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Put {
    #[schemars(with = "serde_json::Value")]
    value: Box<RawValue>,
}

impl Command for Put {
    fn spec() -> CommandSpec {
        CommandSpec {
            creation: CreationRule::Upserts,
            ..CommandSpec::new("put")
        }
    }
}

/// Upserts, and passes over what it doesn't know.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Keep {
    items: Vec<Item>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Item {
    price: u64,
}

impl Command for Keep {
    fn spec() -> CommandSpec {
        CommandSpec {
            creation: CreationRule::Upserts,
            strict: false,
            ..CommandSpec::new("keep")
        }
    }
}

/// Updates; filled from path and headers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Fill {
    id: String,
    text: String,
    #[serde(default)]
    count: Option<u64>,
    #[serde(default)]
    more: i64,
}

const fn variable(field: &'static str, name: &'static str, source: VariableSource) -> Variable {
    Variable {
        field,
        name,
        source,
    }
}

impl Command for Fill {
    fn spec() -> CommandSpec {
        CommandSpec {
            id_field: Some("id"),
            variables: const {
                &[
                    variable("id", "fill_id", VariableSource::Path),
                    variable("text", "Fill-Text", VariableSource::Header),
                    variable("count", "count", VariableSource::Path),
                ]
            },
            ..CommandSpec::new("fill")
        }
    }

    fn aggregate_id(&self) -> Option<String> {
        Some(self.id.clone())
    }
}

/// Declares commands without fields that differ in what they declare alone.
macro_rules! commands {
    ($($name:ident: $spec:expr;)*) => {$(
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        pub(super) struct $name {}

        impl Command for $name {
            fn spec() -> CommandSpec {
                CommandSpec { empty_body: Some("{}"), ..$spec }
            }

            fn validate(&self) -> Vec<BindingError> {
                assert_ne!(stringify!($name), "Explode", "as this command does");
                Vec::new()
            }
        }
    )*};
}

commands! {
    Ping: CommandSpec { creation: CreationRule::Upserts, ..CommandSpec::new("ping") };
    Seal: CommandSpec { access: AccessRule::Owner, ..CommandSpec::new("seal") };
    Ship: CommandSpec { access: AccessRule::Roles(&["shipper"]), ..CommandSpec::new("ship") };
    Look: CommandSpec { access: AccessRule::Public, ..CommandSpec::new("look") };
    Inspect: CommandSpec {
        access: AccessRule::Policy(|_, identity| identity.key.id.as_str() == "open-door"),
        ..CommandSpec::new("inspect")
    };
    Explode: CommandSpec::new("explode");
}

pub(super) struct TestClock;

impl Clock for TestClock {
    fn now(&self) -> EpochMillis {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(100)
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        std::future::pending().boxed()
    }
}

#[derive(Default)]
pub(super) struct CountingRandom(AtomicU64);

impl Random for CountingRandom {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    fn bits(&self) -> u64 {
        0
    }
}

pub(super) struct DeclaredRules;

impl Authorizer for DeclaredRules {}

/// A look-up over a few commits, which counts what it is asked.
#[derive(Default)]
pub(super) struct Lookup {
    commits: HashMap<(TenantId, AggregateType, RequestId), Commit>,
    is_down: bool,
    asked: AtomicUsize,
}

#[async_trait]
impl RequestLookup for Lookup {
    async fn find(
        &self,
        tenant: &TenantId,
        aggregate_type: &AggregateType,
        request_id: &RequestId,
    ) -> Result<Option<Commit>, StorageError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_down {
            return Err(StorageError::Unavailable("the cable is out".into()));
        }
        let key = (tenant.clone(), aggregate_type.clone(), request_id.clone());
        Ok(self.commits.get(&key).cloned())
    }
}

/// An admission and the look-up behind it.
pub(super) struct Fixture {
    pub(super) admission: Admission,
    pub(super) lookup: Arc<Lookup>,
}

impl Fixture {
    pub(super) fn new(mode: AccessMode) -> Self {
        Self::with(mode, Lookup::default(), |registry| registry)
    }

    pub(super) fn with(
        mode: AccessMode,
        lookup: Lookup,
        more: impl FnOnce(RegistryBuilder) -> RegistryBuilder,
    ) -> Self {
        let registry = RegistryBuilder::new("test")
            .register::<Ownerless>()
            .register::<Owned>()
            .register::<Personal>()
            .register::<Fixed>();
        let lookup = Arc::new(lookup);
        let admission = Admission {
            registry: Arc::new(more(registry).build().unwrap()),
            mode,
            authorizer: Arc::new(DeclaredRules),
            requests: lookup.clone(),
            clock: Arc::new(TestClock),
            random: Arc::new(CountingRandom::default()),
            node: NodeName::trusted("node-1"),
            limits: AdmissionLimits {
                body_bytes_max: 64 * 1024,
                wait_timeout_max: Duration::from_secs(300),
            },
        };
        Self { admission, lookup }
    }

    pub(super) fn admit(&self, submission: Submission) -> Result<BuiltCommand, CommandError> {
        self.admission
            .admit(submission)
            .now_or_never()
            .expect("no port of these tests waits")
    }

    pub(super) fn error(&self, submission: Submission) -> CommandError {
        self.admit(submission).expect_err("this should be refused")
    }

    pub(super) fn look_ups(&self) -> usize {
        self.lookup.asked.load(Ordering::Relaxed)
    }
}

pub(super) fn user(subject: &str) -> Principal {
    Principal {
        subject: Some(Arc::from(subject)),
        ..Principal::anonymous()
    }
}

pub(super) fn with_role(subject: &str, role: &str) -> Principal {
    Principal {
        roles: vec![Arc::from(role)],
        ..user(subject)
    }
}

/// A commit as the look-up finds it, of an ownerless aggregate that was opened.
pub(super) fn opened(request: &str, id: &str, subject: &str, owner: &str) -> Commit {
    Commit {
        partition: PartitionNo(0),
        position: 1,
        key: AggregateKey {
            tenant: TenantId::default_tenant(),
            aggregate_type: AggregateType::trusted("ownerless"),
            id: AggregateId::trusted(id),
        },
        version: 1,
        request_id: RequestId::trusted(request),
        command_id: CommandId(Uuid::nil()),
        command_type: Arc::from("open"),
        principal: Arc::from(subject),
        owner: OwnerId::trusted(owner),
        space: SpaceId::none(),
        origin: NodeName::trusted("node-2"),
        events: Arc::from([]),
        result: None,
        headers: Headers::new(),
        committed_at: 0,
    }
}

impl Lookup {
    pub(super) fn holding(commits: impl IntoIterator<Item = Commit>) -> Self {
        let keyed = commits.into_iter().map(|commit| {
            let AggregateKey {
                tenant,
                aggregate_type,
                ..
            } = commit.key.clone();
            ((tenant, aggregate_type, commit.request_id.clone()), commit)
        });
        Self {
            commits: keyed.collect(),
            ..Self::default()
        }
    }

    pub(super) fn down() -> Self {
        Self {
            is_down: true,
            ..Self::default()
        }
    }
}
