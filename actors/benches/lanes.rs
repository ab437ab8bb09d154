//! Lanes on the memory backend against bare actix actors, in one run on the same threads.
//!
//! `cargo bench -p wow-actors --bench lanes` prints commands a second and the ratio; with
//! `-- --seconds 5` each figure runs that long, with `-- --answers 500` until each client has so
//! many answers. Only the ratio means anything from one machine to another.
//!
//! `--profile` and `--profile-bare` run one figure alone, for a profiler: under `valgrind
//! --tool=callgrind` the difference of two runs is what the answers between them cost, and
//! `WOW_BENCH_SLOWER=50` makes the node's clock as slow as its work.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench"
)]

#[path = "support/counter.rs"]
mod counter;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actix::prelude::*;
use counter::{Add, Counter, system};
use wow_actors::{Limits, Placement};
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

/// The node's own allocator, for both sides of the comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLIENTS: usize = 64;

/// The floor: an actor that adds, and answers.
struct Bare {
    total: i64,
}

impl Actor for Bare {
    type Context = Context<Self>;
}

#[derive(Message)]
#[rtype(result = "i64")]
struct BareAdd(i64);

impl Handler<BareAdd> for Bare {
    type Result = i64;

    fn handle(&mut self, message: BareAdd, _context: &mut Self::Context) -> i64 {
        self.total += message.0;
        self.total
    }
}

fn bare(length: Length, actors: usize, arbiters: usize) -> Rate {
    let (ready, started) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runner = System::new();
        let arbiters: Vec<_> = (0..arbiters).map(|_| Arbiter::new()).collect();
        let addresses: Vec<Addr<Bare>> = (0..actors)
            .map(|index| {
                let arbiter = arbiters[index % arbiters.len()].handle();
                Bare::start_in_arbiter(&arbiter, |_| Bare { total: 0 })
            })
            .collect();
        ready.send((addresses, System::current())).unwrap();
        runner.run().unwrap();
    });
    let (addresses, running) = started.recv().unwrap();
    let addresses = Arc::new(addresses);
    let rate = load(length, move |client, count| {
        let addresses = Arc::clone(&addresses);
        async move {
            let index = pick(client, count, addresses.len());
            addresses[index].send(BareAdd(1)).await.unwrap();
        }
    });
    running.stop();
    thread.join().unwrap();
    rate
}

fn lanes(length: Length, aggregates: usize, arbiters: usize, stage: Stage) -> Rate {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let running = runtime.block_on(system::<Counter>(
        Placement::Arbiters(arbiters),
        Limits::default(),
    ));
    let handle = running.handle();
    let kept = handle.clone();
    let rate = load(length, move |client, count| {
        let handle = handle.clone();
        async move {
            let id = pick(client, count, aggregates);
            let add = Submission::typed(Add { by: 1 })
                .aggregate_id(id.to_string())
                .wait(stage);
            let result = handle.submit(add).await.unwrap();
            assert!(result.succeeded(), "{:?}", result.error);
        }
    });
    runtime.block_on(running.stop());
    if matches!(length, Length::Answers(_)) {
        // What was committed stays in memory: to free it is no part of an answer's cost.
        std::mem::forget(kept);
    }
    rate
}

/// Spreads the clients' requests over so many targets.
fn pick(client: usize, count: u64, targets: usize) -> usize {
    let mixed = (client as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(count * 7919);
    usize::try_from(mixed % targets as u64).unwrap()
}

/// What this process has used of all processors, in seconds.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the command's name in brackets: field 3 of proc(5) and on; a tick is 10 ms.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// What a load came to.
struct Rate {
    /// Answers a second.
    answers: f64,
    /// Processor time for one answer, clients included, in microseconds. Other load on the
    /// machine changes it far less than the answers a second.
    micros: f64,
}

/// How long a load goes on.
#[derive(Clone, Copy)]
enum Length {
    Time(Duration),
    /// So many answers of each client: the difference of two runs is what the answers cost.
    Answers(u64),
}

/// Closed-loop clients on a runtime of their own.
fn load<F, R>(length: Length, ask: F) -> Rate
where
    F: Fn(usize, u64) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicU64::new(0));
    let most = match length {
        Length::Time(_) => u64::MAX,
        Length::Answers(answers) => answers,
    };
    let (started, used) = (Instant::now(), processor_seconds());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (ask, stop, done) = (ask.clone(), Arc::clone(&stop), Arc::clone(&done));
            runtime.spawn(async move {
                let mut count = 0;
                while count < most && !stop.load(Ordering::Relaxed) {
                    ask(client, count).await;
                    count += 1;
                }
                done.fetch_add(count, Ordering::Relaxed);
            })
        })
        .collect();
    if let Length::Time(time) = length {
        // The load runs on threads of its own; this one only waits for its time to pass.
        #[expect(clippy::disallowed_methods, reason = "a bench runs for a time")]
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    }
    runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    let answers = done.load(Ordering::Relaxed) as f64;
    Rate {
        answers: answers / started.elapsed().as_secs_f64(),
        micros: (processor_seconds() - used) * 1e6 / answers,
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments
        .iter()
        .position(|argument| argument == "--seconds")
        .map_or(3, |index| arguments[index + 1].parse().unwrap());
    let seconds = Duration::from_secs(seconds);
    let length = arguments
        .iter()
        .position(|argument| argument == "--answers")
        .map_or(Length::Time(seconds), |index| {
            Length::Answers(arguments[index + 1].parse().unwrap())
        });
    if arguments
        .iter()
        .any(|argument| argument == "--profile-bare")
    {
        let rate = bare(length, 1000, 1);
        println!("{:.0} answers a second", rate.answers);
        return;
    }
    if arguments.iter().any(|argument| argument == "--profile") {
        // One figure alone, for a profiler.
        let rate = lanes(length, 1000, 1, Stage::Processed);
        println!(
            "{:.0} answers a second, {:.1} µs each",
            rate.answers, rate.micros
        );
        return;
    }
    println!("{CLIENTS} clients, memory backend, answers a second");
    for arbiters in [1, 2] {
        let floor = bare(length, 1000, arbiters);
        println!(
            "bare actix, 1000 actors, {arbiters} arbiters: {:>9.0}  {:.1} µs each",
            floor.answers, floor.micros
        );
        for (name, aggregates, stage) in [
            ("PROCESSED, 1000 aggregates", 1000, Stage::Processed),
            ("PROCESSED, 8 aggregates", 8, Stage::Processed),
            ("SNAPSHOT, 1000 aggregates", 1000, Stage::Snapshot),
        ] {
            let rate = lanes(length, aggregates, arbiters, stage);
            println!(
                "lanes, {name}, {arbiters} arbiters: {:>9.0}  {:.1} µs each  ratio {:.2}",
                rate.answers,
                rate.micros,
                rate.answers / floor.answers
            );
        }
    }
}
