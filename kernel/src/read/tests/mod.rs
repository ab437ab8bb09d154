//! What reads answer, over the ports in memory and a small domain.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

mod scope;
mod states;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::to_raw_value;
use uuid::Uuid;

use super::*;
use crate::commit::{Headers, RecordedEvent, StoredSnapshot};
use crate::id::{
    AggregateId, CommandId, NodeName, OwnerId, PartitionNo, RequestId, SpaceId, TenantId,
};
use crate::memory::{ManualClock, MemoryStore};
use crate::model::{Decide, DecideContext, Decision, Evolve, Rejection};
use crate::ports::{CommitLog, Unobserved};
use crate::registry::RegistryBuilder;
use crate::submission::Source;

#[derive(Debug, Clone, Serialize, Deserialize, crate::Event)]
enum Happened {
    Added { amount: i64 },
    Noted { text: String },
    Exploded,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema, crate::Command)]
struct Add {
    amount: i64,
}

/// Declares aggregate types that differ in their options alone.
macro_rules! ledgers {
    ($($name:ident ($($option:tt)*);)*) => {$(
        #[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, crate::Aggregate)]
        #[aggregate(commands(Add), $($option)*)]
        struct $name {
            sum: i64,
            notes: String,
        }

        impl Evolve for $name {
            type Event = Happened;

            fn evolve(&mut self, event: &Happened) {
                match event {
                    Happened::Added { amount } => self.sum += amount,
                    Happened::Noted { text } => self.notes.push_str(text),
                    Happened::Exploded => panic!("as this event does"),
                }
            }
        }

        impl Decide<Add> for $name {
            async fn decide(
                &self,
                command: &Add,
                _context: &DecideContext,
            ) -> Result<Decision<Happened>, Rejection> {
                Ok(Decision::event(Happened::Added { amount: command.amount }))
            }
        }
    )*};
}

ledgers! {
    Ledger(name = "ledger", revision = 2);
    Owned(name = "owned", owner = "always");
    Personal(name = "personal", owner = "aggregate_id");
    Audited(name = "audited", read(roles("auditor")));
}

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

/// A store with commits, and a reader over it.
struct Fixture {
    store: MemoryStore,
    clock: ManualClock,
    reader: Reader,
}

impl Fixture {
    fn new(mode: AccessMode) -> Self {
        let clock = ManualClock::starting_at(0);
        let store = MemoryStore::new(Arc::new(clock.clone()));
        let registry = RegistryBuilder::new("test")
            .register::<Ledger>()
            .register::<Owned>()
            .register::<Personal>()
            .register::<Audited>();
        let reader = Reader {
            registry: Arc::new(registry.build().unwrap()),
            loader: Loader {
                history: Arc::new(store.clone()),
                log: Arc::new(store.clone()),
                observer: Arc::new(Unobserved),
                recent_requests: 0,
            },
            snapshots: Arc::new(store.clone()),
            authorizer: Arc::new(DeclaredRules),
            mode,
        };
        Self {
            store,
            clock,
            reader,
        }
    }

    /// An open-mode ledger `1` whose version n added n, one second after the version before.
    fn counted(versions: u64) -> Self {
        let fixture = Self::new(AccessMode::Open);
        for version in 1..=versions {
            fixture.clock.advance(Duration::from_secs(1));
            fixture.append(&key("ledger"), version, added(version));
        }
        fixture
    }

    fn append(&self, key: &AggregateKey, version: Version, event: RecordedEvent) {
        self.append_for(key, version, event, ("", ""));
    }

    fn append_for(
        &self,
        key: &AggregateKey,
        version: Version,
        event: RecordedEvent,
        (owner, space): (&str, &str),
    ) {
        let commit = Commit {
            partition: PartitionNo(0),
            position: 0,
            key: key.clone(),
            version,
            request_id: RequestId::trusted(format!("{key}-{version}")),
            command_id: CommandId(Uuid::from_u128(u128::from(version))),
            command_type: Arc::from("change"),
            principal: Arc::from(format!("operator-{version}")),
            owner: OwnerId::trusted(owner),
            space: SpaceId::trusted(space),
            origin: NodeName::trusted("node-1"),
            events: Arc::from([event]),
            result: None,
            headers: Headers::new(),
            committed_at: 0,
        };
        done(self.store.append(Arc::new(commit))).unwrap();
    }

    fn save_snapshot(&self, version: Version, state: &str, state_revision: u32) {
        let snapshot = StoredSnapshot {
            key: key("ledger"),
            version,
            partition: PartitionNo(0),
            position: version,
            facts: AggregateFacts {
                event_time: 1000 * version as i64,
                ..Default::default()
            },
            state: state.to_owned(),
            state_revision,
            recent_requests: None,
            snapshot_time: 0,
        };
        done(self.store.save(vec![snapshot])).unwrap();
    }
}

/// The ports in memory never wait.
fn done<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("nothing here waits")
}

fn key(aggregate_type: &str) -> AggregateKey {
    AggregateKey {
        tenant: TenantId::default_tenant(),
        aggregate_type: AggregateType::trusted(aggregate_type),
        id: AggregateId::trusted("1"),
    }
}

fn recorded(name: &str, body: &serde_json::Value) -> RecordedEvent {
    RecordedEvent {
        name: Arc::from(name),
        revision: 1,
        body: to_raw_value(body).unwrap(),
    }
}

fn added(amount: u64) -> RecordedEvent {
    recorded("added", &json!({ "amount": amount }))
}

fn request(aggregate_type: &str) -> ReadRequest {
    let mut facts = IdentityFacts::default();
    facts.aggregate_id.push((Source::Path, "1".to_owned()));
    ReadRequest {
        aggregate_type: AggregateType::trusted(aggregate_type),
        facts,
        principal: Principal::anonymous(),
    }
}

fn sum(state: &str) -> i64 {
    serde_json::from_str::<Ledger>(state).unwrap().sum
}
