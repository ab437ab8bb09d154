//! `wow bench`: loads a node, over HTTP or in this process, and measures how long it answers.
//!
//! Its clients are closed loops: each has one command under way, and sends the next as soon as
//! that is answered. So a slow node is sent less, and latencies are those of that many clients.

mod latency;
mod load;
mod target;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::{Args, ValueEnum};
use wow::prelude::*;

use self::load::{Load, Measured, Plan};
use self::target::Target;
pub(super) use self::target::TargetError;
use super::error::Failure;
use super::{Global, output};
use crate::domains;

/// Load a node, and measure commands a second and latencies
#[derive(Debug, Args)]
#[command(
    after_help = "It writes accounts and carts: don't point it at data that matters.

Examples:
  wow bench
  wow bench --in-process sqlite --stage PROCESSED
  wow bench --load hot --clients 16 --json"
)]
pub(super) struct BenchArguments {
    /// The node to load
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Load a node in this process instead, on a new store that is thrown away
    #[arg(long, value_name = "STORE", conflicts_with = "url")]
    in_process: Option<Store>,
    /// What to send, instead of all of it in turns
    #[arg(long)]
    load: Option<Load>,
    /// How many clients
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: u32,
    /// How long each load is measured, after a fifth of that to warm up
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// What each client waits for: SENT, PROCESSED, SNAPSHOT or SAGA_HANDLED
    #[arg(long, default_value = "SNAPSHOT", ignore_case = true)]
    stage: Stage,
    /// How many carts `spread` goes to
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    aggregates: u32,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Where a node in this process keeps its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    /// In memory
    Memory,
    /// In a SQLite file, in a folder below this one
    Sqlite,
}

pub(super) fn run(arguments: BenchArguments, global: Global) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let Some(store) = arguments.in_process else {
            let target = Target::over_http(&arguments.url, arguments.clients)?;
            return measure(&arguments, &target).await;
        };
        let scratch = Scratch::new(store)?;
        let node = scratch.node(global).await?;
        let done = measure(&arguments, &Target::in_process(node.handle())).await;
        node.stop().await;
        done
    })
}

async fn measure(arguments: &BenchArguments, target: &Target) -> Result<(), Failure> {
    let loads = match arguments.load {
        Some(load) => vec![load],
        None => Load::value_variants().to_vec(),
    };
    let is_watched = io::stderr().is_terminal();
    let mut all = Vec::new();
    for load in loads {
        let plan = Plan {
            load,
            stage: arguments.stage,
            clients: arguments.clients,
            carts: arguments.aggregates,
            duration: arguments.duration,
        };
        if is_watched {
            eprintln!(
                "{load:?} for {}…",
                humantime::format_duration(plan.duration)
            );
        }
        let measured = plan.run(target).await?;
        if !arguments.json {
            output::print(&line(&measured))?;
        }
        all.push(measured);
    }
    if arguments.json {
        output::print_json(&all)?;
    }
    Ok(())
}

fn line(measured: &Measured) -> String {
    let Measured { latency_ms, .. } = measured;
    format!(
        "{:<7} {:<9} {:>5} clients {:>9.0} commands/s   p50 {:>8.2} ms   p90 {:>8.2}   \
         p99 {:>8.2}   max {:>8.2}   busy {}\n",
        measured.load,
        measured.stage,
        measured.clients,
        measured.commands_per_second,
        latency_ms.p50,
        latency_ms.p90,
        latency_ms.p99,
        latency_ms.max,
        measured.busy
    )
}

/// A store for one run; its folder goes with it.
struct Scratch {
    url: String,
    folder: Option<std::path::PathBuf>,
}

impl Scratch {
    fn new(store: Store) -> io::Result<Self> {
        if store == Store::Memory {
            let url = "memory:".to_owned();
            return Ok(Self { url, folder: None });
        }
        // Below this folder, for a system's folder for such things is often no disk.
        let folder = std::path::PathBuf::from(format!("wow-bench-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let url = format!("sqlite://{}/wow.db", folder.display());
        Ok(Self {
            url,
            folder: Some(folder),
        })
    }

    async fn node(&self, mut global: Global) -> Result<Node, Failure> {
        global
            .set
            .push(("storage.url".to_owned(), self.url.clone()));
        let node = NodeBuilder::from_config(global.load()?)
            .types(domains::register)
            .services(domains::provide)
            .without_ports();
        Ok(node.start().await?)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder
            && let Err(error) = std::fs::remove_dir_all(folder)
        {
            eprintln!("wow: {} is still there: {error}", folder.display());
        }
    }
}
