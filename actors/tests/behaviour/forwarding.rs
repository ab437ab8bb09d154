//! Commands that run on the owner of their partition, or here where that can't be (R21 to R23).

use std::time::Duration;

use wow_kernel::assignment::assigned;
use wow_kernel::id::{NodeName, PartitionNo, Version};
use wow_kernel::partition::partition_of;
use wow_kernel::submission::Submission;
use wow_kernel::wait::Stage;

use crate::sagas::{handled, note_to};
use crate::support::nasty::{Hold, Reject};
use crate::support::network::{Link, Network};
use crate::support::{LEASE_TTL, Node, World, code, key, note, pass, paused, to};

const PARTITIONS: u32 = 4;

const SETTLE: Duration = Duration::from_secs(8);

/// Two nodes of one service, settled.
struct Pair {
    world: World,
    network: Network,
    a: Node,
    b: Node,
}

impl Pair {
    async fn start() -> Self {
        let (world, network) = (World::new(), Network::default());
        let a = start(&world, &network, "a").await;
        let b = start(&world, &network, "b").await;
        pass(SETTLE).await;
        assert!(a.handle.is_ready() && b.handle.is_ready());
        Self {
            world,
            network,
            a,
            b,
        }
    }

    async fn stop(self) {
        self.a.stop().await;
        self.b.stop().await;
    }
}

async fn start(world: &World, network: &Network, name: &'static str) -> Node {
    let mut plan = world.here().with_sagas().member(name);
    plan.peers = Some(network.channel());
    let node = plan.start().await;
    network.join(name, &node.handle);
    node
}

/// An id whose partition is assigned to this of the two nodes.
fn id_of(owner: &str) -> String {
    let members = ["a", "b"].map(NodeName::trusted);
    (0..)
        .map(|n| format!("id-{n}"))
        .find(|id| {
            let partition: PartitionNo = partition_of(&key("nasty", id), PARTITIONS);
            assigned(partition, &members).is_some_and(|name| name.as_str() == owner)
        })
        .unwrap()
}

fn fallbacks(node: &Node, reason: &str) -> f64 {
    node.metric("wow_local_fallbacks_total", &[("reason", reason)])
}

#[test]
fn r20_a_command_runs_on_its_partitions_owner_and_its_answer_comes_back() {
    paused(async {
        let pair = Pair::start().await;
        let id = id_of("b");
        let answer = pair.a.run(note(&id, 7)).await.unwrap();
        assert_eq!(answer.aggregate_version, Some(1));
        assert_eq!(answer.aggregate_id.as_str(), id);
        assert_eq!(pair.network.forwards(), 1);
        assert_eq!((pair.a.lanes(), pair.b.lanes()), (0.0, 1.0));
        assert_eq!(pair.world.notes(&id).await, [7]);
        // The caller waits where it came in.
        let commit = &pair.world.commits("nasty", &id).await[0];
        assert_eq!(commit.origin.as_str(), "a");
        assert_eq!(commit.command_id, answer.command_id);
        // And what is owned here stays here.
        assert_eq!(code(&pair.a.run(note(&id_of("a"), 1)).await), "Ok");
        assert_eq!(pair.network.forwards(), 1);
        assert_eq!(
            pair.a
                .metric("wow_forwards_total", &[("outcome", "answered")]),
            1.0
        );
        assert_eq!((pair.a.in_flight(), pair.b.in_flight()), (0.0, 0.0));
        pair.stop().await;
    });
}

#[test]
fn r60_sent_is_told_when_the_owners_lane_has_the_command() {
    paused(async {
        let pair = Pair::start().await;
        pair.world.gates.close("door");
        let id = id_of("b");
        let hold = to(
            &id,
            Hold {
                gate: "door".to_owned(),
                n: 1,
            },
        );
        let answer = pair.a.handle.submit(hold.wait(Stage::Sent)).await.unwrap();
        assert_eq!(answer.stage, Stage::Sent);
        assert!(pair.world.notes(&id).await.is_empty());
        pair.world.gates.open("door");
        pass(Duration::from_secs(1)).await;
        assert_eq!(pair.world.notes(&id).await, [1]);
        pair.stop().await;
    });
}

#[test]
fn r63_stages_reached_on_the_owner_are_signalled_to_the_origin() {
    paused(async {
        let pair = Pair::start().await;
        let began = tokio::time::Instant::now();
        let id = id_of("b");
        let snapshot = pair
            .a
            .handle
            .submit(note(&id, 1).wait(Stage::Snapshot))
            .await;
        assert_eq!(code(&snapshot), "Ok");
        let saga = pair.a.handle.submit(handled(vec![note_to("t", 1)])).await;
        assert_eq!(code(&saga), "Ok");
        // Without a signal a caller looks at storage after a second.
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        pair.stop().await;
    });
}

#[test]
fn r63_a_lost_signal_is_made_up_for_by_storage() {
    paused(async {
        let pair = Pair::start().await;
        pair.network.deafen("a");
        let snapshot = note(&id_of("b"), 1).wait(Stage::Snapshot);
        assert_eq!(code(&pair.a.handle.submit(snapshot).await), "Ok");
        pair.stop().await;
    });
}

#[test]
fn r21_what_has_not_left_runs_here_and_each_reason_is_counted() {
    paused(async {
        let pair = Pair::start().await;
        let id = id_of("b");
        let reasons = [
            (Link::Down, "not_sent"),
            (Link::Full, "forwards_full"),
            (Link::NotCapable, "not_capable"),
        ];
        for (n, (link, reason)) in reasons.into_iter().enumerate() {
            pair.network.link("b", link);
            assert_eq!(
                code(&pair.a.run(note(&id, n as u64)).await),
                "Ok",
                "{reason}"
            );
            assert_eq!(fallbacks(&pair.a, reason), 1.0, "{reason}");
        }
        assert_eq!(pair.world.notes(&id).await, [0, 1, 2]);
        assert_eq!(pair.network.forwards(), 0);
        // The owner has a cached state by now that is older than these: it is told the truth.
        pair.network.link("b", Link::Up);
        assert_eq!(code(&pair.a.run(note(&id, 3)).await), "Ok");
        assert_eq!(pair.world.notes(&id).await, [0, 1, 2, 3]);
        pair.stop().await;
    });
}

#[test]
fn r21_a_node_that_is_not_the_owner_says_so_and_the_origin_runs_it() {
    paused(async {
        let pair = Pair::start().await;
        let id = id_of("b");
        // The owner stops: it takes nothing more, and the origin doesn't know yet.
        let Pair {
            world,
            network,
            a,
            b,
        } = pair;
        network.deafen("a");
        world.gates.close("door");
        let held = b.begin(to(
            &id_of("b"),
            Hold {
                gate: "door".to_owned(),
                n: 1,
            },
        ));
        world.gates.reached("door", 1).await;
        let stopping = tokio::task::spawn_local(b.stop());
        pass(Duration::from_millis(1)).await;
        let other = (1..)
            .map(|n| format!("{id}-{n}"))
            .find(|other| {
                partition_of(&key("nasty", other), PARTITIONS)
                    == partition_of(&key("nasty", &id), PARTITIONS)
            })
            .unwrap();
        assert_eq!(code(&a.run(note(&other, 5)).await), "Ok");
        assert_eq!(fallbacks(&a, "not_owner"), 1.0);
        world.gates.open("door");
        assert_eq!(code(&held.await.unwrap()), "Ok");
        stopping.await.unwrap();
        a.stop().await;
    });
}

#[test]
fn r22_once_sent_it_never_runs_here_and_storage_says_what_became_of_it() {
    paused(async {
        let pair = Pair::start().await;
        let id = id_of("b");
        pair.network.link("b", Link::LosesAnswers);
        let answer = pair.a.run(note(&id, 1)).await.unwrap();
        assert_eq!(
            (answer.aggregate_version, answer.duplicate),
            (Some(1), false)
        );
        assert_eq!((pair.a.lanes(), pair.b.lanes()), (0.0, 1.0));
        // Lost on its way: nothing ran, and a retry with the same request id may.
        pair.network.link("b", Link::LosesCalls);
        let sent = pair.a.run(note(&id, 2).request_id("r-2")).await;
        assert_eq!(code(&sent), "wow.command.timeout");
        assert_eq!(pair.world.notes(&id).await, [1]);
        let lost = [("outcome", "no_answer")];
        assert_eq!(pair.a.metric("wow_forwards_total", &lost), 2.0);
        pair.network.link("b", Link::Up);
        assert_eq!(
            code(&pair.a.run(note(&id, 2).request_id("r-2")).await),
            "Ok"
        );
        // The same request again, whose first answer is in the log.
        pair.network.link("b", Link::LosesCalls);
        let again = pair.a.run(note(&id, 2).request_id("r-2")).await.unwrap();
        assert!(again.duplicate);
        assert_eq!(again.aggregate_version, Some(2));
        // Of another request it shows nothing (R13).
        let other = Submission::typed(Reject {
            code: String::new(),
        });
        let reused = pair.a.run(other.aggregate_id(&id).request_id("r-2")).await;
        assert_eq!(code(&reused), "wow.command.request-id-reused");
        assert_eq!(pair.world.notes(&id).await, [1, 2]);
        pair.stop().await;
    });
}

#[test]
fn r23_the_owners_refusal_is_the_answer() {
    paused(async {
        let pair = Pair::start().await;
        let id = id_of("b");
        let reject = Reject {
            code: "nasty.no".to_owned(),
        };
        assert_eq!(code(&pair.a.run(to(&id, reject)).await), "nasty.no");
        let late = note(&id, 1).expected_version(5 as Version);
        assert_eq!(
            code(&pair.a.run(late).await),
            "wow.command.version-mismatch"
        );
        assert_eq!((pair.a.lanes(), pair.b.lanes()), (0.0, 1.0));
        pair.stop().await;
    });
}

#[test]
fn r77_a_new_owner_is_known_at_once_and_without_a_hint_at_the_next_look() {
    paused(async {
        for deaf in [false, true] {
            let pair = Pair::start().await;
            if deaf {
                pair.network.deafen("b");
            }
            let Pair {
                world,
                network,
                a,
                b,
                ..
            } = pair;
            network.leave("a");
            a.stop().await;
            let wait = match deaf {
                false => Duration::from_millis(200),
                true => LEASE_TTL / 3 + Duration::from_secs(1),
            };
            pass(wait).await;
            assert_eq!(b.partitions(), f64::from(PARTITIONS), "deaf: {deaf}");
            assert_eq!(code(&b.run(note(&id_of("a"), 1)).await), "Ok");
            assert_eq!(world.notes(&id_of("a")).await, [1]);
            b.stop().await;
        }
    });
}

#[test]
fn r80_a_commit_in_anothers_partition_is_hinted_to_its_owner() {
    paused(async {
        let pair = Pair::start().await;
        let id = id_of("b");
        pair.network.link("b", Link::Down);
        let began = tokio::time::Instant::now();
        let snapshot = pair
            .a
            .handle
            .submit(note(&id, 1).wait(Stage::Snapshot))
            .await;
        assert_eq!(code(&snapshot), "Ok");
        // The owner would find it by its poll after 250 ms.
        assert!(
            began.elapsed() < Duration::from_millis(200),
            "{:?}",
            began.elapsed()
        );
        pair.stop().await;
    });
}
