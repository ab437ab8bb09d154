//! The command loop's rules, R40 to R58, over the memory backend and storage that fails on purpose.
//!
//! Nothing here waits for real: a command is polled until it ends, and whenever it can't go on
//! the manual clock moves to the next who sleeps.

#![allow(
    clippy::unwrap_used,
    reason = "a test that can't go on should say where"
)]

mod confirming;
mod conflicts;
mod deciding;
mod domain;
mod duplicates;
mod guarding;
mod interleavings;
mod loading;
mod outcomes;
mod purity;
mod sending;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use domain::*;
use serde_json::value::RawValue;

use super::*;
use crate::access::Principal;
use crate::admission::{Admission, AdmissionLimits};
use crate::commit::{Commit, RecordedEvent, StoredSnapshot};
use crate::faults::{Call, Fault, Faults};
use crate::id::{AggregateKey, AggregateType, NodeName, TenantId};
use crate::memory::{ManualClock, MemoryStore, SeededRandom};
use crate::model::Command;
use crate::ports::{Authorizer, InPlace, SnapshotStore};
use crate::registry::{AggregateDefinition, Registry, RegistryBuilder};
use crate::submission::Submission;

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

/// Counts what the kernel tells.
#[derive(Debug, Default)]
struct Observed {
    conflicts: AtomicUsize,
    unknowns: AtomicUsize,
    ignored: AtomicUsize,
    slow_turns: AtomicUsize,
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl KernelObserver for Observed {
    fn append_conflict(&self) {
        count(&self.conflicts);
    }

    fn outcome_unknown(&self) {
        count(&self.unknowns);
    }

    fn snapshot_ignored(&self) {
        count(&self.ignored);
    }

    fn slow_turn(&self, _aggregate_type: &str, _command_type: &str, _took: Duration) {
        count(&self.slow_turns);
    }
}

/// One node, with the lane of one aggregate. Its storage fails as `faults` says; admission looks
/// past that, so that the counters count the kernel's calls alone.
struct Node {
    kernel: Kernel,
    admission: Admission,
    lane: LaneState,
    store: Arc<MemoryStore>,
    faults: Faults,
    clock: Arc<ManualClock>,
    effects: Arc<Effects>,
    observed: Arc<Observed>,
}

impl Node {
    /// The first node, over a store of its own.
    fn new(mode: AccessMode) -> Self {
        let clock = Arc::new(ManualClock::new());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self::over(&store, &clock, mode, 1)
    }

    /// Another node over the same store, with a cold lane.
    fn beside(&self, seed: u64) -> Self {
        Self::over(&self.store, &self.clock, self.kernel.mode, seed)
    }

    /// A node whose lane holds jar `j`, which has 10 in it at version 2.
    fn with_jar() -> Self {
        let mut node = Self::new(AccessMode::Open);
        let name = "jam".to_owned();
        assert_eq!(version(node.run(to_jar(Open { name }))), 1);
        assert_eq!(version(node.run(act(How::Add(10)))), 2);
        node
    }

    fn over(
        store: &Arc<MemoryStore>,
        clock: &Arc<ManualClock>,
        mode: AccessMode,
        seed: u64,
    ) -> Self {
        let faults = Faults::new(clock.clone());
        let faulty = faults.wrap(Arc::clone(store));
        let random = Arc::new(SeededRandom::new(seed, clock.clone()));
        let (effects, observed) = (Arc::<Effects>::default(), Arc::<Observed>::default());
        let mut services = Services::default();
        services.provide(Arc::clone(&effects));
        services.provide((**clock).clone());
        Self {
            kernel: Kernel {
                loader: Loader {
                    history: faulty.clone(),
                    log: faulty.clone(),
                    observer: observed.clone(),
                    recent_requests: 256,
                },
                log: faulty.clone(),
                history: faulty.clone(),
                requests: faulty,
                clock: clock.clone(),
                random: random.clone(),
                isolation: Arc::new(InPlace),
                observer: observed.clone(),
                services: Arc::new(services),
                mode,
                limits: KernelLimits::default(),
                sender: OnceLock::new(),
            },
            admission: Admission {
                registry: Arc::new(registry()),
                mode,
                authorizer: Arc::new(DeclaredRules),
                requests: store.clone(),
                clock: clock.clone(),
                random,
                node: NodeName::trusted(format!("node-{seed}")),
                limits: AdmissionLimits {
                    body_bytes_max: 1024,
                    wait_timeout_max: Duration::from_secs(300),
                },
            },
            lane: LaneState::default(),
            store: Arc::clone(store),
            faults,
            clock: Arc::clone(clock),
            effects,
            observed,
        }
    }

    fn build(&self, submission: Submission) -> Arc<BuiltCommand> {
        let built = finish(&self.clock, self.admission.admit(submission));
        built.expect("these commands are admitted")
    }

    /// Admits a command, and runs it to its end.
    fn run(&mut self, submission: Submission) -> Executed {
        let command = self.build(submission);
        self.execute(&command)
    }

    fn execute(&mut self, command: &Arc<BuiltCommand>) -> Executed {
        finish(&self.clock, self.kernel.execute(&mut self.lane, command))
    }

    /// Runs a command until it waits for the first time.
    fn start<'a>(&'a mut self, command: &'a Arc<BuiltCommand>) -> Started<'a> {
        let mut execution: Started<'a> = Box::pin(self.kernel.execute(&mut self.lane, command));
        assert!(poll(&mut execution).is_pending(), "it ended without a wait");
        execution
    }

    fn cached_version(&self) -> Option<Version> {
        self.lane.cached.as_ref().map(|loaded| loaded.version)
    }

    /// How often a method was called while something ran.
    fn calls<T>(&mut self, call: Call, run: impl FnOnce(&mut Self) -> T) -> (u64, T) {
        let before = self.faults.calls(call);
        let answer = run(self);
        (self.faults.calls(call) - before, answer)
    }

    /// How often storage was read while something ran.
    fn reads<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> (u64, T) {
        let before = self.faults.reads();
        let answer = run(self);
        (self.faults.reads() - before, answer)
    }

    /// All that the log holds of jar `j`.
    fn log(&self) -> Vec<Commit> {
        let key = jar();
        let read = self.store.read_aggregate(&key, 0, Version::MAX, 10_000);
        finish(&self.clock, read).unwrap()
    }

    /// The state of jar `j` as the log alone gives it.
    fn replayed(&self) -> Jar {
        let definition = self.definition();
        let initial = Loaded::initial(definition, &jar(), 256).unwrap();
        let replayed = self
            .log()
            .iter()
            .try_fold(initial, |loaded, commit| loaded.apply(definition, commit));
        state_of(&replayed.unwrap())
    }

    /// Commits an event of jar `j` that no command here decides.
    fn append_event(&self, name: &str, revision: u32, body: &str) {
        let newest = self.log().last().unwrap().clone();
        let id = self.admission.random.uuid();
        let commit = Commit {
            version: newest.version + 1,
            request_id: crate::id::RequestId::trusted(id.to_string()),
            command_id: crate::id::CommandId(id),
            events: Arc::from([RecordedEvent {
                name: name.to_owned().into(),
                revision,
                body: RawValue::from_string(body.to_owned()).unwrap(),
            }]),
            ..newest
        };
        finish(&self.clock, self.store.append(Arc::new(commit))).unwrap();
    }

    fn definition(&self) -> &Arc<AggregateDefinition> {
        let of = |known: &&Arc<AggregateDefinition>| known.is::<Jar>();
        self.admission
            .registry
            .aggregates()
            .iter()
            .find(of)
            .unwrap()
    }

    /// Saves a snapshot of what the lane holds, as the snapshot subscription does.
    fn save_snapshot(&self, change: impl FnOnce(&mut StoredSnapshot)) {
        let loaded = self.lane.cached.as_ref().unwrap();
        let written = loaded.version.is_multiple_of(crate::recent::WRITTEN_EVERY);
        let mut snapshot = StoredSnapshot {
            key: jar(),
            version: loaded.version,
            partition: crate::partition::partition_of(&jar(), 64),
            position: loaded.position,
            facts: (*loaded.facts).clone(),
            state: self.definition().encode_state(&loaded.state).unwrap(),
            state_revision: self.definition().spec.state_revision,
            recent_requests: written.then(|| loaded.recent.to_json().into()),
            snapshot_time: 0,
        };
        change(&mut snapshot);
        finish(&self.clock, self.store.save(vec![snapshot])).unwrap();
    }
}

type Started<'a> = Pin<Box<dyn Future<Output = Executed> + 'a>>;

fn registry() -> Registry {
    RegistryBuilder::new("test")
        .register::<Jar>()
        .register::<Safe>()
        .register::<Cursed>()
        .build()
        .unwrap()
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future to its end, and lets time pass whenever it waits.
fn finish<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(&mut future) {
            return output;
        }
        let next = clock.next_wake().expect("it waits, and nobody sleeps");
        clock.advance(next);
    }
}

fn jar() -> AggregateKey {
    AggregateKey {
        tenant: TenantId::default_tenant(),
        aggregate_type: AggregateType::trusted("jar"),
        id: crate::id::AggregateId::trusted("j"),
    }
}

/// A command for jar `j`.
fn to_jar(command: impl Command) -> Submission {
    Submission::typed(command).aggregate_id("j")
}

fn act(how: How) -> Submission {
    to_jar(Act { how })
}

fn act_purely(how: How) -> Submission {
    to_jar(ActPurely { how })
}

/// One of the system's own commands for jar `j`.
fn builtin(command: &str) -> Submission {
    Submission::json("jar", command, "").aggregate_id("j")
}

fn user(subject: &str) -> Principal {
    Principal {
        subject: Some(subject.into()),
        ..Principal::anonymous()
    }
}

fn state_of(loaded: &Loaded) -> Jar {
    loaded.state.downcast_ref::<Jar>().unwrap().clone()
}

#[track_caller]
fn version(executed: Executed) -> Version {
    view(executed).commit.version
}

#[track_caller]
fn view(executed: Executed) -> StateView {
    match executed {
        Executed::Committed(view) => view,
        other => panic!("a commit was expected: {other:?}"),
    }
}

/// The version that a request had committed before, and whether as a duplicate.
#[track_caller]
fn known(executed: Executed) -> (Version, bool) {
    match executed {
        Executed::Known {
            record, duplicate, ..
        } => (record.version, duplicate),
        other => panic!("a request that has committed was expected: {other:?}"),
    }
}

#[track_caller]
fn failure(executed: Executed) -> CommandError {
    match executed {
        Executed::Failed(error) => error,
        other => panic!("a failure was expected: {other:?}"),
    }
}

#[track_caller]
fn code(executed: Executed) -> String {
    failure(executed).code().into_owned()
}

#[track_caller]
fn unchanged(executed: Executed) -> Version {
    match executed {
        Executed::Unchanged { version, .. } => version,
        other => panic!("nothing was to change: {other:?}"),
    }
}
