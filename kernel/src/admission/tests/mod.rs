//! Admission's rules, R1 to R13, over a small domain written against the traits by hand.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

mod body;
mod build;
mod domain;
mod identity;
mod marked_id;
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
    AccessRule, Aggregate, AggregateSpec, Command, CommandSet, CommandSpec, Decide, DecideContext,
    Decision, Evolve, Rejection, VariableSource,
};
use crate::ports::StorageError;
use crate::registry::RegistryBuilder;
use domain::*;

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
            .map(Arc::unwrap_or_clone)
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
