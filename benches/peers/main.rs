//! Wow against cqrs-es on PostgreSQL, in one run on one server: the same account, events of the
//! same size, the same clients.
//!
//! `cargo run --release` in this folder; `WOW_TEST_POSTGRES_URL` names the server. Each framework
//! is used as its documentation says. A client of cqrs-es whose command meets a conflict sends it
//! again, as its users must; only what was committed counts.

#![allow(
    clippy::unwrap_used,
    reason = "a bench that can't go on should say where"
)]

#[path = "../support/mod.rs"]
mod support;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use cqrs_es::event_sink::EventSink;
use cqrs_es::{AggregateError, DomainEvent};
use postgres_es::{PostgresCqrs, default_postgress_pool, postgres_cqrs};
use sea_orm::ConnectionTrait as _;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

use self::support::account::{Enter, enter};
use self::support::commits::PARTITIONS;
use self::support::database::{Engine, Scratch, connect};
use self::support::floor::Floor;
use self::support::load::{self, Measured};
use self::support::node;

const CLIENTS: usize = 64;

/// The schema of postgres-es, as its documentation gives it.
const EVENTS: &str = "create table events (aggregate_type text not null, aggregate_id text \
    not null, sequence bigint check (sequence >= 0) not null, event_type text not null, \
    event_version text not null, payload json not null, metadata json not null, \
    primary key (aggregate_type, aggregate_id, sequence))";

#[derive(Debug, Default, Serialize, Deserialize)]
struct PeerAccount {
    balance: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
enum PeerEvent {
    AmountEntered {
        source_id: String,
        amount: i64,
        text: String,
    },
}

impl DomainEvent for PeerEvent {
    fn event_type(&self) -> String {
        "AmountEntered".to_owned()
    }

    fn event_version(&self) -> String {
        "1.0".to_owned()
    }
}

impl cqrs_es::Aggregate for PeerAccount {
    const TYPE: &'static str = "account";
    type Command = PeerEvent;
    type Event = PeerEvent;
    type Error = Infallible;
    type Services = ();

    async fn handle(
        &mut self,
        command: PeerEvent,
        _services: &(),
        sink: &EventSink<Self>,
    ) -> Result<(), Infallible> {
        sink.write(command, self).await;
        Ok(())
    }

    fn apply(&mut self, event: PeerEvent) {
        let PeerEvent::AmountEntered { amount, .. } = event;
        self.balance += amount;
    }
}

async fn peer(accounts: usize, duration: Duration) -> Measured {
    let scratch = Scratch::new(Engine::Postgres).await;
    let connection = connect(&scratch.url).await;
    connection.execute_unprepared(EVENTS).await.unwrap();
    connection.close().await.unwrap();
    let pool = default_postgress_pool(&scratch.url).await;
    let framework: Arc<PostgresCqrs<PeerAccount>> =
        Arc::new(postgres_cqrs(pool.clone(), Vec::new(), ()));
    let measured = load::run(CLIENTS, duration, move |client, count| {
        let framework = Arc::clone(&framework);
        let id = node::account(client, count, accounts);
        async move {
            loop {
                let Enter {
                    source_id,
                    amount,
                    text,
                } = enter();
                let command = PeerEvent::AmountEntered {
                    source_id,
                    amount,
                    text,
                };
                match framework.execute(&id, command).await {
                    Ok(()) => return,
                    Err(AggregateError::AggregateConflict) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    })
    .await;
    pool.close().await;
    scratch.remove().await;
    measured
}

async fn wow(stage: Stage, accounts: usize, duration: Duration) -> Measured {
    let scratch = Scratch::new(Engine::Postgres).await;
    let node = node::start(&scratch.url, false).await;
    let measured = node::in_process(&node, stage, accounts, CLIENTS, duration).await;
    node.stop().await;
    scratch.remove().await;
    measured
}

async fn floor(duration: Duration) -> Measured {
    let scratch = Scratch::new(Engine::Postgres).await;
    let floor = Floor::on(Engine::Postgres, &scratch.url, PARTITIONS).await;
    let measured = node::bare(Arc::new(floor), CLIENTS, duration).await;
    scratch.remove().await;
    measured
}

#[tokio::main]
async fn main() {
    let duration = Duration::from_secs(4);
    println!("commands a second on PostgreSQL, {CLIENTS} clients; median of three runs");
    for accounts in [1000, 8] {
        let (mut peers, mut processed, mut snapshot, mut floors) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // In turns, so that what else goes on on the machine meets all of them.
        for _ in 0..3 {
            floors.push(floor(duration).await);
            peers.push(peer(accounts, duration).await);
            processed.push(wow(Stage::Processed, accounts, duration).await);
            snapshot.push(wow(Stage::Snapshot, accounts, duration).await);
        }
        let peer = Measured::median(peers);
        for (name, measured) in [
            ("bare batching writer", Measured::median(floors)),
            ("cqrs-es with postgres-es", peer),
            ("wow, PROCESSED", Measured::median(processed)),
            ("wow, SNAPSHOT", Measured::median(snapshot)),
        ] {
            println!(
                "{accounts:>5} accounts  {name:<26} {:>7.0}/s  p50 {:>6.2} ms  p99 {:>7.2} ms  \
                 {:.1} times cqrs-es",
                measured.rate,
                measured.p50,
                measured.p99,
                measured.rate / peer.rate
            );
        }
    }
}
