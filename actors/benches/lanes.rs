//! Lanes on the memory backend against bare actix actors, in one run on the same threads.
//!
//! `cargo bench -p wow-actors --bench lanes` prints commands a second and the ratio; with
//! `-- --seconds 5` each figure runs that long. Only the ratio means anything from one machine
//! to another.

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
use wow_actors::Placement;
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

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

fn bare(seconds: Duration, actors: usize, arbiters: usize) -> f64 {
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
    let rate = load(seconds, move |client, count| {
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

fn lanes(seconds: Duration, aggregates: usize, arbiters: usize, stage: Stage) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let running = runtime.block_on(system::<Counter>(Placement::Arbiters(arbiters)));
    let handle = running.handle();
    let rate = load(seconds, move |client, count| {
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
    rate
}

/// Spreads the clients' requests over so many targets.
fn pick(client: usize, count: u64, targets: usize) -> usize {
    let mixed = (client as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(count * 7919);
    usize::try_from(mixed % targets as u64).unwrap()
}

/// Closed-loop clients on a runtime of their own; answers a second.
fn load<F, R>(seconds: Duration, ask: F) -> f64
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
    let started = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (ask, stop, done) = (ask.clone(), Arc::clone(&stop), Arc::clone(&done));
            runtime.spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    ask(client, count).await;
                    count += 1;
                }
                done.fetch_add(count, Ordering::Relaxed);
            })
        })
        .collect();
    std::thread::sleep(seconds);
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for client in clients {
            client.await.unwrap();
        }
    });
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments
        .iter()
        .position(|argument| argument == "--seconds")
        .map_or(3, |index| arguments[index + 1].parse().unwrap());
    let seconds = Duration::from_secs(seconds);
    println!("{CLIENTS} clients, memory backend, answers a second");
    for arbiters in [1, 2] {
        let floor = bare(seconds, 1000, arbiters);
        println!("bare actix, 1000 actors, {arbiters} arbiters: {floor:>10.0}");
        for (name, aggregates, stage) in [
            ("PROCESSED, 1000 aggregates", 1000, Stage::Processed),
            ("PROCESSED, 8 aggregates", 8, Stage::Processed),
            ("SNAPSHOT, 1000 aggregates", 1000, Stage::Snapshot),
        ] {
            let rate = lanes(seconds, aggregates, arbiters, stage);
            println!(
                "lanes, {name}, {arbiters} arbiters: {rate:>10.0}  ratio {:.2}",
                rate / floor
            );
        }
    }
}
