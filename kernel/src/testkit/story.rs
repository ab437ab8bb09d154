//! What has happened to one aggregate so far: a log in memory, and the node that would run it.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;

use crate::access::{AccessMode, Principal};
use crate::admission::{Admission, AdmissionLimits};
use crate::commit::{AggregateFacts, Commit, Headers, RecordedEvent, StateView};
use crate::execute::{Executed, Kernel, KernelLimits, LaneState, Loader};
use crate::id::{
    AggregateId, AggregateKey, CommandId, NodeName, OwnerId, PartitionNo, RequestId, SpaceId,
    TenantId, Version,
};
use crate::memory::{ManualClock, MemoryStore, SeededRandom};
use crate::model::{Aggregate, Event, Evolve, Services, decode_stored};
use crate::ports::{Authorizer, CommitLog, InPlace, Random, Unobserved};
use crate::registry::{AggregateDefinition, ErasedState, Registry};
use crate::submission::Submission;

/// The declared rules alone.
struct DeclaredRules;

#[async_trait]
impl Authorizer for DeclaredRules {}

/// One aggregate on a node in memory.
pub(super) struct Story<A> {
    pub(super) registry: Arc<Registry>,
    pub(super) definition: Arc<AggregateDefinition>,
    pub(super) key: AggregateKey,
    pub(super) owner: OwnerId,
    pub(super) space: SpaceId,
    pub(super) services: Arc<Services>,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    random: Arc<SeededRandom>,
    version: Version,
    aggregate: PhantomData<fn() -> A>,
}

/// Who and where, as the test names it.
pub(super) struct Place {
    pub(super) id: String,
    pub(super) tenant: Option<String>,
    pub(super) owner: Option<String>,
    pub(super) space: Option<String>,
}

impl<A: Aggregate> Story<A> {
    /// An aggregate without a history.
    pub(super) fn new(
        registry: Registry,
        place: &Place,
        services: Services,
        clock: ManualClock,
    ) -> Self {
        let definition = registry
            .aggregates()
            .iter()
            .find(|known| known.is::<A>())
            .expect("the aggregate under test is registered")
            .clone();
        let tenant = definition.spec.static_tenant.or(place.tenant.as_deref());
        let owner = match definition.owner_is_id() {
            true => Some(&*place.id),
            false => place.owner.as_deref(),
        };
        let clock = Arc::new(clock);
        Self {
            registry: Arc::new(registry),
            key: AggregateKey {
                tenant: tenant.map_or_else(TenantId::default_tenant, TenantId::trusted),
                aggregate_type: definition.aggregate_type.clone(),
                id: AggregateId::trusted(&*place.id),
            },
            owner: owner.map_or_else(OwnerId::none, OwnerId::trusted),
            space: place
                .space
                .as_deref()
                .map_or_else(SpaceId::none, SpaceId::trusted),
            definition,
            services: Arc::new(services),
            store: Arc::new(MemoryStore::new(clock.clone())),
            random: Arc::new(SeededRandom::new(1, clock.clone())),
            clock,
            version: 0,
            aggregate: PhantomData,
        }
    }

    /// Commits events that have happened.
    pub(super) fn commit(&mut self, events: Vec<RecordedEvent>) {
        self.version += 1;
        let id = self.random.uuid();
        let commit = Commit {
            partition: PartitionNo(0),
            position: 0,
            key: self.key.clone(),
            version: self.version,
            request_id: RequestId::trusted(id.to_string()),
            command_id: CommandId(id),
            command_type: Arc::from("given"),
            principal: Arc::from(""),
            owner: self.owner.clone(),
            space: self.space.clone(),
            origin: node(),
            events: events.into(),
            result: None,
            headers: Headers::new(),
            committed_at: 0,
        };
        // Partition 0 holds everything: the kernel below counts one partition.
        now(self.store.append(Arc::new(commit))).expect("the log takes the next version");
    }

    /// Runs one command as a node would.
    pub(super) async fn run(&mut self, mode: AccessMode, submission: Submission) -> Executed {
        let executed = match self.admission(mode).admit(submission).await {
            Ok(command) => {
                let mut lane = LaneState::default();
                self.kernel(mode).execute(&mut lane, &command).await
            }
            Err(error) => Executed::Failed(error),
        };
        if let Executed::Committed(view) = &executed {
            self.version = view.commit.version;
            self.check_evolution(&view.state);
        }
        executed
    }

    /// What deciding ended with must be what the log gives to whoever loads it.
    fn check_evolution(&self, decided: &ErasedState) {
        let written = |state| {
            self.definition
                .encode_state(state)
                .unwrap_or_else(|error| panic!("the state can't be written as JSON: {error}"))
        };
        let (decided, loaded) = (written(decided), written(&self.view().state));
        assert!(
            decided == loaded,
            "the log gives another state than deciding did: evolve has to depend on the event \
             alone, and an event has to be read back as it was written\n  decided: {decided}\n  \
             loaded:  {loaded}"
        );
    }

    /// The newest commit, and the state after it.
    pub(super) fn view(&self) -> StateView {
        let read = self
            .store
            .read_aggregate(&self.key, self.version - 1, self.version, 1);
        let commit = now(read)
            .ok()
            .and_then(|commits| commits.into_iter().next());
        let (state, facts) = self.state();
        StateView {
            commit: Arc::new(commit.expect("the newest commit is in the log")),
            state,
            facts,
            recent_requests: None,
        }
    }

    /// The state that the log gives.
    pub(super) fn state(&self) -> (ErasedState, Arc<AggregateFacts>) {
        let kernel = self.kernel(AccessMode::Open);
        match now(kernel.loader.load(&self.definition, &self.key)) {
            Ok(loaded) => (loaded.state, loaded.facts),
            Err(error) => panic!("the log can't be read back: {error}"),
        }
    }

    fn admission(&self, mode: AccessMode) -> Admission {
        Admission {
            registry: Arc::clone(&self.registry),
            mode,
            authorizer: Arc::new(DeclaredRules),
            requests: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            node: node(),
            limits: AdmissionLimits {
                body_bytes_max: 1024 * 1024,
                wait_timeout_max: Duration::from_secs(300),
            },
        }
    }

    fn kernel(&self, mode: AccessMode) -> Kernel {
        let limits = KernelLimits::default();
        Kernel {
            loader: Loader {
                history: self.store.clone(),
                log: self.store.clone(),
                observer: Arc::new(Unobserved),
                recent_requests: 256,
            },
            log: self.store.clone(),
            history: self.store.clone(),
            requests: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            isolation: Arc::new(InPlace),
            observer: Arc::new(Unobserved),
            services: self.services.clone(),
            mode,
            limits: KernelLimits {
                partitions: 1,
                ..limits
            },
            sender: OnceLock::new(),
        }
    }
}

fn node() -> NodeName {
    NodeName::trusted("test")
}

/// The memory backend never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    future
        .now_or_never()
        .expect("the log in memory answers at once")
}

/// An event as the log stores it.
pub(super) fn recorded<E: Event>(event: &E) -> RecordedEvent {
    let spec = &E::specs()[event.index()];
    let body = event
        .encode()
        .unwrap_or_else(|error| panic!("event '{}' can't be written as JSON: {error}", spec.name));
    RecordedEvent {
        name: Arc::from(spec.name),
        revision: spec.revision,
        body,
    }
}

/// A stored event as the domain knows it.
pub(super) fn typed<A: Aggregate>(event: &RecordedEvent) -> <A as Evolve>::Event {
    decode_stored(&event.name, event.revision, &event.body)
        .unwrap_or_else(|fault| panic!("a committed event can't be read back: {fault}"))
}

/// Events, one a line, for failure messages.
pub(super) fn lines(events: &[RecordedEvent]) -> String {
    match events {
        [] => "  (none)".to_owned(),
        events => {
            let lines: Vec<_> = events
                .iter()
                .map(|event| format!("  {} {}", event.name, event.body.get()))
                .collect();
            lines.join("\n")
        }
    }
}

/// Whether an anonymous caller's command comes as in `open` mode, a known one's as in `jwt`.
pub(super) fn mode_of(principal: Option<&Principal>) -> AccessMode {
    match principal {
        Some(_) => AccessMode::Jwt,
        None => AccessMode::Open,
    }
}
