//! Membership: who runs which partition, and what a node does that can't know (R70 to R74).

use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;
use wow_actors::{ClaimError, StartError};
use wow_kernel::assignment::assigned;
use wow_kernel::faults::{Call, Fault, Moment};
use wow_kernel::id::{NodeName, PartitionNo};
use wow_kernel::ports::{
    CheckpointStore, LeaseStore, Member, MemberClaim, MemberState, PartitionLease,
};
use wow_kernel::wait::Stage;

use crate::sagas::{handled, note_to, start};
use crate::support::sagas::Start;
use crate::support::{HAND_OVER_TIMEOUT, LEASE_TTL, Node, World, code, note, pass, paused, to};

/// The partitions of the nodes here.
const PARTITIONS: u32 = 4;

/// Several looks: whatever can be repaired is repaired by then.
const SETTLE: Duration = Duration::from_secs(8);

fn share(of: &str, members: &[&str]) -> f64 {
    let members: Vec<_> = members
        .iter()
        .map(|name| NodeName::trusted(*name))
        .collect();
    let own = (0..PARTITIONS)
        .filter(|at| assigned(PartitionNo(*at), &members).is_some_and(|name| name.as_str() == of));
    own.count() as f64
}

async fn leases(world: &World) -> Vec<PartitionLease> {
    world.store.view().await.unwrap().1
}

async fn owned_by(world: &World, name: &str) -> f64 {
    let leases = leases(world).await;
    let own = leases.iter().filter(|lease| {
        lease
            .owner
            .as_ref()
            .is_some_and(|(owner, _)| owner.as_str() == name)
    });
    own.count() as f64
}

async fn member(world: &World, name: &str) -> Option<Member> {
    let (members, _) = world.store.view().await.unwrap();
    members
        .into_iter()
        .find(|member| member.name.as_str() == name)
}

fn changes(node: &Node, change: &str) -> f64 {
    node.metric(
        "wow_partition_ownership_changes_total",
        &[("change", change)],
    )
}

#[test]
fn r70_a_node_alone_runs_every_partition_and_leaves_nothing_behind() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().member("a").start().await;
        assert!(!node.handle.is_ready());
        pass(SETTLE).await;
        assert!(node.handle.is_ready());
        assert_eq!(node.partitions(), f64::from(PARTITIONS));
        assert_eq!(node.metric("wow_members", &[]), 1.0);
        assert!(leases(&world).await.iter().all(|lease| lease.epoch == 1));
        assert_eq!(
            code(&node.handle.submit(handled(vec![note_to("a", 1)])).await),
            "Ok"
        );
        assert_eq!(
            code(&node.handle.submit(note("a", 2).wait(Stage::Snapshot)).await),
            "Ok"
        );
        node.stop().await;
        assert_eq!(member(&world, "a").await, None);
        assert!(
            leases(&world)
                .await
                .iter()
                .all(|lease| lease.owner.is_none())
        );
    });
}

#[test]
fn r71_two_nodes_share_the_partitions_and_a_leaver_hands_all_over() {
    paused(async {
        let world = World::new();
        let one = world.here().with_sagas().member("a").start().await;
        pass(SETTLE).await;
        let two = world.here().with_sagas().member("b").start().await;
        assert!(!two.handle.is_ready());
        pass(SETTLE).await;
        for (node, name) in [(&one, "a"), (&two, "b")] {
            assert!(node.handle.is_ready(), "{name}");
            assert_eq!(node.partitions(), share(name, &["a", "b"]), "{name}");
            assert_eq!(
                owned_by(&world, name).await,
                share(name, &["a", "b"]),
                "{name}"
            );
            assert_eq!(node.metric("wow_members", &[]), 2.0);
        }
        assert!(share("a", &["a", "b"]) > 0.0 && share("b", &["a", "b"]) > 0.0);
        assert_eq!(changes(&one, "handed_over"), share("b", &["a", "b"]));
        // A look is every third of a lease's time, and at once where something is awaited.
        one.stop().await;
        pass(LEASE_TTL / 3 + Duration::from_secs(1)).await;
        assert_eq!(two.partitions(), f64::from(PARTITIONS));
        assert!(two.handle.is_ready());
        two.stop().await;
    });
}

#[test]
fn r72_a_partitions_sagas_run_once_wherever_its_commands_do() {
    paused(async {
        let world = World::new();
        let one = world.here().with_sagas().member("a").start().await;
        let two = world.here().with_sagas().member("b").start().await;
        pass(SETTLE + LEASE_TTL).await;
        let before = world
            .controls
            .handled
            .load(std::sync::atomic::Ordering::SeqCst);
        // Without a channel a command runs where it arrives; the owner finds it in the log, and
        // the caller finds what the owner did in storage (R63).
        for (n, node) in [&one, &two, &one, &two].into_iter().enumerate() {
            let steps = vec![note_to("target", n as u64)];
            assert_eq!(code(&node.handle.submit(handled(steps)).await), "Ok");
        }
        assert_eq!(world.notes("target").await, [0, 1, 2, 3]);
        let after = world
            .controls
            .handled
            .load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(after - before, 4);
        one.stop().await;
        two.stop().await;
    });
}

#[test]
fn r72_a_dead_nodes_partitions_are_taken_when_its_lease_expires() {
    paused(async {
        let world = World::new();
        let dead = Member {
            name: NodeName::trusted("dead"),
            incarnation: Uuid::from_u128(1),
            address: "dead:9090".to_owned(),
            state: MemberState::Live,
            protocol_min: 1,
            protocol_max: 1,
            valid_for: Duration::ZERO,
        };
        let free: Vec<_> = (0..PARTITIONS)
            .map(|at| PartitionLease {
                partition: PartitionNo(at),
                owner: None,
                epoch: 4,
            })
            .collect();
        let claimed = world.store.claim(&dead, LEASE_TTL).await.unwrap();
        assert_eq!(claimed, MemberClaim::Claimed);
        // Rows of an earlier life of the cluster begin at no epoch.
        let free: Vec<_> = free
            .into_iter()
            .map(|lease| PartitionLease { epoch: 0, ..lease })
            .collect();
        assert_eq!(
            world.store.take(&dead, &free).await.unwrap().len(),
            free.len()
        );
        let node = world.here().member("a").start().await;
        pass(LEASE_TTL - Duration::from_millis(500)).await;
        assert_eq!(node.partitions(), 0.0);
        assert!(!node.handle.is_ready());
        // It looks right after the expiry.
        pass(Duration::from_millis(700)).await;
        assert_eq!(node.partitions(), f64::from(PARTITIONS));
        assert!(leases(&world).await.iter().all(|lease| lease.epoch == 2));
        pass(SETTLE).await;
        assert!(node.handle.is_ready());
        node.stop().await;
    });
}

#[test]
fn r70_a_restarted_node_gets_its_name_and_a_twin_does_not() {
    paused(async {
        let world = World::new();
        let first = world.here().member("a").start().await;
        pass(SETTLE).await;
        let began = tokio::time::Instant::now();
        let twin = world.here().member("a").try_start().await;
        let refused = StartError::Membership(ClaimError::NameHeld {
            name: "a".to_owned(),
        });
        assert_eq!(
            twin.err().map(|error| error.to_string()),
            Some(refused.to_string())
        );
        assert!(began.elapsed() >= LEASE_TTL + Duration::from_secs(2));
        assert!(first.handle.is_ready());
        // Killed: its lease runs out, and the next life of the name waits for that.
        drop(first);
        let began = tokio::time::Instant::now();
        let again = world.here().member("a").start().await;
        assert!(began.elapsed() <= LEASE_TTL + Duration::from_secs(1));
        pass(SETTLE).await;
        assert_eq!(again.partitions(), f64::from(PARTITIONS));
        again.stop().await;
    });
}

#[test]
fn r74_a_node_that_cannot_renew_stops_acting_as_owner_in_time() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().member("a").start().await;
        pass(SETTLE).await;
        let away = [Call::Renew, Call::ViewLeases, Call::Claim, Call::Take];
        node.faults.always(&away, Fault::Refuse);
        pass(LEASE_TTL / 2).await;
        assert_eq!(node.partitions(), f64::from(PARTITIONS));
        // By its own clock, before the lease ends by storage's.
        pass(LEASE_TTL / 2).await;
        assert_eq!(node.partitions(), 0.0);
        assert_eq!(changes(&node, "lost"), f64::from(PARTITIONS));
        assert!(!node.handle.is_ready());
        assert!(node.metric("wow_lease_renewal_failures_total", &[]) > 0.0);
        // It still runs what it is sent (R75).
        assert_eq!(code(&node.run(note("a", 1)).await), "Ok");
        node.faults.heal();
        pass(SETTLE).await;
        assert_eq!(node.partitions(), f64::from(PARTITIONS));
        assert!(node.handle.is_ready());
        node.stop().await;
    });
}

#[test]
fn r74_a_renewal_that_hangs_does_not_keep_a_node_from_giving_up_in_time() {
    paused(async {
        let world = World::new();
        let node = world.here().member("a").start().await;
        pass(SETTLE).await;
        let gate = node.faults.hold(Call::Renew, Moment::Before);
        pass(LEASE_TTL).await;
        assert_eq!(node.partitions(), 0.0);
        gate.release();
        pass(SETTLE).await;
        assert_eq!(node.partitions(), f64::from(PARTITIONS));
        assert!(node.handle.is_ready());
        node.stop().await;
    });
}

#[test]
fn r74_a_lease_that_ran_out_is_claimed_anew_by_a_new_life() {
    paused(async {
        let world = World::new();
        let node = world.here().member("a").start().await;
        pass(SETTLE).await;
        let before = member(&world, "a").await.unwrap().incarnation;
        // The answer to every renewal is lost until the lease has run out.
        node.faults.always(&[Call::Renew], Fault::LoseCall);
        pass(LEASE_TTL * 2).await;
        node.faults.heal();
        pass(SETTLE).await;
        let after = member(&world, "a").await.unwrap().incarnation;
        assert_ne!(before, after);
        assert_eq!(node.partitions(), f64::from(PARTITIONS));
        assert!(leases(&world).await.iter().all(|lease| lease.epoch == 2));
        node.stop().await;
    });
}

#[test]
fn r73_checkpoints_are_saved_before_a_partition_is_released() {
    paused(async {
        let world = World::new();
        let one = world.here().with_sagas().member("a").start().await;
        pass(SETTLE).await;
        for n in 0..8 {
            let sent = one.handle.submit(start(vec![note_to("t", n)])).await;
            assert_eq!(code(&sent), "Ok");
        }
        let two = world.here().with_sagas().member("b").start().await;
        pass(SETTLE).await;
        let partitions: Vec<_> = (0..PARTITIONS).map(PartitionNo).collect();
        let heads = wow_kernel::ports::CommitLog::heads(&*world.store, &partitions)
            .await
            .unwrap();
        for subscription in ["snapshot", "mover", "watcher"] {
            let saved = CheckpointStore::load(&*world.store, subscription, &partitions)
                .await
                .unwrap();
            for head in heads.iter().filter(|head| head.head > 0) {
                let at = saved.iter().find(|saved| saved.partition == head.partition);
                assert_eq!(at.map(|at| at.position), Some(head.head), "{subscription}");
            }
        }
        one.stop().await;
        two.stop().await;
    });
}

#[test]
fn r73_a_saga_that_does_not_end_holds_a_hand_over_for_its_time_and_no_longer() {
    paused(async {
        let world = World::new();
        let one = world.here().with_sagas().member("a").start().await;
        pass(SETTLE).await;
        // In every partition a command of the saga's hangs.
        let panics = &world.controls.panics;
        panics.store(true, Ordering::SeqCst);
        for n in 0..16 {
            let id = format!("p-{n}");
            let steps = vec![note_to(&format!("t-{n}"), n)];
            assert_eq!(code(&one.run(to(&id, Start { steps })).await), "Ok");
        }
        one.faults
            .always(&[Call::Append], Fault::Delay(Duration::from_secs(90)));
        panics.store(false, Ordering::SeqCst);
        pass(SETTLE).await;
        let two = world.here().with_sagas().member("b").start().await;
        pass(SETTLE).await;
        assert_eq!(two.partitions(), 0.0);
        assert!(!two.handle.is_ready());
        pass(HAND_OVER_TIMEOUT).await;
        assert_eq!(two.partitions(), share("b", &["a", "b"]));
        assert!(two.handle.is_ready());
        one.faults.heal();
        pass(Duration::from_secs(200)).await;
        // Both may have sent the same commands; each took effect once.
        for n in 0..16 {
            assert_eq!(world.notes(&format!("t-{n}")).await, [n]);
        }
        one.stop().await;
        two.stop().await;
    });
}

#[test]
fn r81_a_runner_whose_place_was_taken_begins_anew_where_its_node_is_the_owner() {
    paused(async {
        let world = World::new();
        let node = world.here().with_sagas().member("a").start().await;
        pass(SETTLE).await;
        assert_eq!(
            code(&node.handle.submit(handled(vec![note_to("t", 1)])).await),
            "Ok"
        );
        pass(Duration::from_secs(2)).await;
        // A replay raises the generation (R81).
        let partitions: Vec<_> = (0..PARTITIONS).map(PartitionNo).collect();
        let saved = CheckpointStore::load(&*world.store, "mover", &partitions)
            .await
            .unwrap();
        for mut checkpoint in saved {
            checkpoint.generation += 1;
            checkpoint.position = 0;
            assert!(
                CheckpointStore::save(&*world.store, checkpoint)
                    .await
                    .unwrap()
            );
        }
        let steps = vec![note_to("t", 2)];
        let sent = node
            .handle
            .submit(handled(steps).timeout(Duration::from_secs(60)))
            .await;
        assert_eq!(code(&sent), "Ok");
        pass(SETTLE * 2).await;
        assert_eq!(world.notes("t").await, [1, 2]);
        let saved = CheckpointStore::load(&*world.store, "mover", &partitions)
            .await
            .unwrap();
        assert!(
            saved
                .iter()
                .any(|checkpoint| checkpoint.generation == 2 && checkpoint.position == 2)
        );
        assert!(node.handle.is_ready());
        node.stop().await;
    });
}
