//! Lanes come and go under load, and no command is lost (R30, R32).

use std::collections::HashMap;
use std::time::Duration;

use wow_kernel::faults::{Call, Rates};
use wow_kernel::wait::Stage;

use crate::support::nasty::Tally;
use crate::support::{World, code, to, until};

const CLIENTS: u64 = 64;
const KEYS: u64 = 1500;

/// How many commands each client sends.
fn commands_each() -> u64 {
    match std::env::var_os("WOW_TEST_SLOW") {
        Some(_) => 20_000,
        None => 3_200,
    }
}

/// What one client has sent and been told is taken: for each key, in order.
type Sent = HashMap<u64, Vec<u64>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r32_no_command_is_lost_or_overtaken_while_lanes_come_and_go() {
    let world = World::new();
    let plan = world.on_threads(2).kernel(|kernel| kernel.partitions = 8);
    let node = plan
        .limits(|limits| limits.idle_timeout = Duration::from_millis(1))
        .start()
        .await;
    let each = commands_each();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(send_all(node.handle.clone(), client, each)))
        .collect();
    let mut sent = Vec::new();
    for client in clients {
        sent.push(client.await.unwrap());
    }
    assert!(node.metric("wow_lanes_passivated_total", &[]) > 0.0);
    // Whatever was answered with SENT ends too, and every lane goes.
    until(|| node.in_flight() == 0.0 && node.lanes() == 0.0).await;
    check(&world, &sent).await;
    assert_eq!(node.stop().await.unfinished, 0);
}

/// The same with a store that is slow now and then, so that lanes wait while others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r32_nor_while_storage_is_slow() {
    let world = World::new();
    let plan = world.on_threads(2).kernel(|kernel| kernel.partitions = 8);
    let node = plan
        .limits(|limits| limits.idle_timeout = Duration::from_millis(1))
        .start()
        .await;
    let slow = Rates {
        delay: 0.05,
        delay_max: Duration::from_millis(5),
        lose_answer: 0.005,
        ..Rates::NONE
    };
    node.faults.at_random(7, &[Call::Append], &slow);
    let each = commands_each() / 20;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(send_all(node.handle.clone(), client, each)))
        .collect();
    let mut sent = Vec::new();
    for client in clients {
        sent.push(client.await.unwrap());
    }
    until(|| node.in_flight() == 0.0 && node.lanes() == 0.0).await;
    check(&world, &sent).await;
    node.stop().await;
}

/// Sends bursts to one key each: all of a burst are in the lane's queue, in order, before the
/// last of it is awaited.
async fn send_all(handle: wow_actors::Handle, client: u64, count: u64) -> Sent {
    let mut sent = Sent::new();
    let mut n = 0;
    while n < count {
        let key = (client * 7919 + n * 104_729) % KEYS;
        for step in 0..4 {
            let number = client << 32 | n;
            let stage = match step {
                3 => Stage::Processed,
                _ => Stage::Sent,
            };
            let tally = to(&key.to_string(), Tally { n: number }).wait(stage);
            let answer = handle.submit(tally).await;
            assert_eq!(code(&answer), "Ok");
            sent.entry(key).or_default().push(number);
            n += 1;
        }
    }
    sent
}

async fn check(world: &World, sent: &[Sent]) {
    let mut expected = 0;
    let mut found = 0;
    for key in 0..KEYS {
        let notes = world.notes(&key.to_string()).await;
        found += notes.len();
        for (client, sent) in (0..).zip(sent) {
            let own: Vec<u64> = notes
                .iter()
                .copied()
                .filter(|n| n >> 32 == client)
                .collect();
            let sent = sent.get(&key).map_or(&[][..], Vec::as_slice);
            assert_eq!(own, sent, "client {client}, key {key}");
            expected += sent.len();
        }
    }
    assert_eq!(found, expected);
}
