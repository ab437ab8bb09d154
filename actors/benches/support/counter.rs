//! A counter, and a system that runs it on the memory backend.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_actors::{
    BlockingPool, Limits, NodeClock, NodeRandom, Placement, Ports, RunningSystem, SystemConfig,
};
use wow_kernel::access::AccessMode;
use wow_kernel::admission::AdmissionLimits;
use wow_kernel::execute::KernelLimits;
use wow_kernel::id::{EpochMillis, NodeName};
use wow_kernel::memory::MemoryStore;
use wow_kernel::model::{Aggregate, Decide, DecideContext, Decision, Evolve, Rejection, Services};
use wow_kernel::ports::{Authorizer, Clock};
use wow_kernel::registry::RegistryBuilder;
use wow_kernel::{Aggregate, Command, Event};

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(tenant = "(0)", commands(Add))]
pub(crate) struct Counter {
    pub(crate) total: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
pub(crate) enum CounterEvent {
    Added { by: i64 },
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
pub(crate) struct Add {
    pub(crate) by: i64,
}

impl Evolve for Counter {
    type Event = CounterEvent;

    fn evolve(&mut self, event: &CounterEvent) {
        let CounterEvent::Added { by } = event;
        self.total += by;
    }
}

impl Decide<Add> for Counter {
    async fn decide(
        &self,
        command: &Add,
        _context: &DecideContext,
    ) -> Result<Decision<CounterEvent>, Rejection> {
        Ok(Decision::event(CounterEvent::Added { by: command.by }))
    }
}

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

/// The node's clock, so many times slower: under a profiler, which slows the work down as much,
/// as much of it happens between two ticks as without.
struct SlowClock {
    clock: NodeClock,
    times: u32,
}

impl Clock for SlowClock {
    fn now(&self) -> EpochMillis {
        self.clock.now() / EpochMillis::from(self.times)
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic() / self.times
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration * self.times)
    }
}

/// How many times slower a profiler makes the work, where one runs it.
fn slow_down() -> u32 {
    std::env::var("WOW_BENCH_SLOWER").map_or(1, |times| times.parse().unwrap())
}

pub(crate) async fn system<A: Aggregate>(placement: Placement, limits: Limits) -> RunningSystem {
    let clock: Arc<dyn Clock> = match slow_down() {
        1 => Arc::new(NodeClock::new()),
        times => Arc::new(SlowClock {
            clock: NodeClock::new(),
            times,
        }),
    };
    let store = MemoryStore::new(clock.clone());
    let store = Arc::new(store);
    let ports = Ports {
        log: store.clone(),
        history: store.clone(),
        requests: store.clone(),
        snapshots: store.clone(),
        checkpoints: store,
        authorizer: Arc::new(DeclaredRules),
        clock,
        random: Arc::new(NodeRandom),
        isolation: Arc::new(BlockingPool::new(tokio::runtime::Handle::current(), 4)),
    };
    let config = SystemConfig {
        node: NodeName::trusted("bench"),
        mode: AccessMode::Open,
        admission: AdmissionLimits {
            body_bytes_max: 1024 * 1024,
            wait_timeout_max: std::time::Duration::from_secs(300),
        },
        kernel: KernelLimits::default(),
        routers: std::collections::HashMap::new(),
        recent_requests: 256,
        limits,
        placement,
        membership: None,
    };
    let registry = Arc::new(
        RegistryBuilder::new("bench")
            .register::<A>()
            .build()
            .unwrap(),
    );
    let metrics = prometheus::Registry::new();
    RunningSystem::start(
        config,
        registry,
        Arc::new(Services::default()),
        ports,
        &metrics,
    )
    .await
    .unwrap()
}
