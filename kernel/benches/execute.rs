//! The bare command loop on memory: nanoseconds a command, without admission, actors or threads.
//!
//! `cargo bench -p wow-kernel --bench execute` prints one line a case. A word after `--` runs
//! the cases whose name has it, as `cargo bench … -- duplicate`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench"
)]

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow_kernel::access::AccessMode;
use wow_kernel::admission::{Admission, AdmissionLimits};
use wow_kernel::command::BuiltCommand;
use wow_kernel::execute::{Executed, Kernel, KernelLimits, LaneState, Loader};
use wow_kernel::id::{EpochMillis, NodeName};
use wow_kernel::memory::{MemoryStore, SeededRandom};
use wow_kernel::model::{Decide, DecideContext, Decision, Evolve, Rejection, Services};
use wow_kernel::ports::{Authorizer, Clock, InPlace, Unobserved};
use wow_kernel::registry::RegistryBuilder;
use wow_kernel::submission::Submission;
use wow_kernel::{Aggregate, Command, Event};

const AGGREGATES: usize = 1000;
const COMMANDS: usize = 100_000;
const ROUNDS: usize = 5;

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum CounterEvent {
    Added { amount: i64, note: String },
}

#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Add, AddCarefully, Create))]
struct Counter {
    total: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
struct Add {
    amount: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts)]
struct AddCarefully {
    amount: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(creates)]
struct Create {
    amount: i64,
}

impl Evolve for Counter {
    type Event = CounterEvent;

    fn evolve(&mut self, CounterEvent::Added { amount, .. }: &CounterEvent) {
        self.total += amount;
    }
}

macro_rules! adds {
    ($($command:ident),*) => {$(
        impl Decide<$command> for Counter {
            async fn decide(
                &self,
                command: &$command,
                _context: &DecideContext,
            ) -> Result<Decision<CounterEvent>, Rejection> {
                Ok(Decision::event(CounterEvent::Added {
                    amount: command.amount,
                    note: "an event of about 150 bytes as it goes into the log, with all that \
                           belongs to it and a few words more to make it long enough"
                        .to_owned(),
                }))
            }
        }
    )*};
}

adds!(Add, AddCarefully, Create);

struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> EpochMillis {
        EpochMillis::try_from(self.0.elapsed().as_millis()).unwrap()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        unreachable!("memory answers at once")
    }
}

struct DeclaredRules;

impl Authorizer for DeclaredRules {}

struct Node {
    kernel: Kernel,
    admission: Admission,
}

impl Node {
    fn new() -> Self {
        let clock = Arc::new(RealClock(Instant::now()));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let random = Arc::new(SeededRandom::new(1, clock.clone()));
        let registry = RegistryBuilder::new("bench").register::<Counter>();
        Self {
            kernel: Kernel {
                loader: Loader {
                    history: store.clone(),
                    log: store.clone(),
                    observer: Arc::new(Unobserved),
                    recent_requests: 256,
                },
                log: store.clone(),
                history: store.clone(),
                requests: store.clone(),
                clock: clock.clone(),
                random: random.clone(),
                isolation: Arc::new(InPlace),
                observer: Arc::new(Unobserved),
                services: Arc::new(Services::default()),
                mode: AccessMode::Open,
                limits: KernelLimits::default(),
                sender: OnceLock::new(),
            },
            admission: Admission {
                registry: Arc::new(registry.build().unwrap()),
                mode: AccessMode::Open,
                authorizer: Arc::new(DeclaredRules),
                requests: store,
                clock,
                random,
                node: NodeName::trusted("bench"),
                limits: AdmissionLimits {
                    body_bytes_max: 1024,
                    wait_timeout_max: Duration::from_secs(300),
                },
            },
        }
    }

    fn build(&self, submission: Submission) -> Arc<BuiltCommand> {
        now(self.admission.admit(submission)).unwrap()
    }
}

/// Memory never waits.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("memory answers at once"),
    }
}

/// Makes the nth submission of a case for the nth aggregate.
type Make = fn(usize, usize) -> Submission;

const CASES: [(&str, Make); 4] = [
    ("update, made request id", |_, aggregate| {
        Submission::typed(Add { amount: 1 }).aggregate_id(format!("a-{aggregate}"))
    }),
    ("update, caller's request id", |number, aggregate| {
        Submission::typed(AddCarefully { amount: 1 })
            .aggregate_id(format!("a-{aggregate}"))
            .request_id(format!("request-{number}"))
    }),
    ("creation, made ids", |_, _| {
        Submission::typed(Create { amount: 1 })
    }),
    ("duplicate in the set", |_, aggregate| {
        Submission::typed(AddCarefully { amount: 1 })
            .aggregate_id(format!("a-{aggregate}"))
            .request_id(format!("request-{aggregate}"))
    }),
];

/// The fastest of a few rounds, in nanoseconds a command.
fn measure(make: Make) -> u128 {
    let rounds = (0..ROUNDS).map(|_| {
        let node = Node::new();
        let commands: Vec<_> = (0..COMMANDS)
            .map(|number| node.build(make(number, number % AGGREGATES)))
            .collect();
        let is_creation = commands[0].aggregate_id_made;
        let lanes = if is_creation { COMMANDS } else { AGGREGATES };
        let mut lanes: Vec<_> = (0..lanes).map(|_| LaneState::default()).collect();
        let started = Instant::now();
        for (number, command) in commands.iter().enumerate() {
            let lane = number % lanes.len();
            let executed = now(node.kernel.execute(&mut lanes[lane], command));
            assert!(!matches!(executed, Executed::Failed(_)), "{executed:?}");
        }
        started.elapsed().as_nanos() / COMMANDS as u128
    });
    rounds.min().unwrap()
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    for (name, make) in CASES {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            println!("{name:<30} {:>6} ns a command", measure(make));
        }
    }
}
