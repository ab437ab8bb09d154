//! The snapshot runner: the newest of each aggregate, from a contiguous history (R80, R84).

use std::time::Duration;

use wow_kernel::faults::{Call, Moment};
use wow_kernel::ports::SnapshotStore;
use wow_kernel::recent::{RecentRequests, WRITTEN_EVERY};
use wow_kernel::wait::Stage;

use crate::support::{Plan, World, code, key, note, pass, paused, until};

fn plan(world: &World) -> Plan {
    world.here().kernel(|kernel| kernel.partitions = 1)
}

#[test]
fn r84_a_batch_keeps_the_newest_of_each_aggregate() {
    paused(async {
        let world = World::new();
        let node = plan(&world).start().await;
        let gate = node.faults.hold(Call::SaveSnapshots, Moment::Before);
        let first = node.begin(note("z", 1));
        gate.reached().await;
        for n in 0..100 {
            for id in ["a", "b"] {
                assert_eq!(code(&node.run(note(id, n)).await), "Ok");
            }
        }
        let waiting = node.begin(note("a", 100));
        let committed = [("outcome", "committed")];
        until(|| node.metric("wow_commands_total", &committed) == 202.0).await;
        gate.release();
        assert_eq!(code(&first.await.unwrap()), "Ok");
        assert_eq!(code(&waiting.await.unwrap()), "Ok");
        // What gathered meanwhile took one call.
        assert_eq!(node.faults.calls(Call::SaveSnapshots), 2);
        let keys = [key("nasty", "a"), key("nasty", "b")];
        assert_eq!(world.store.versions(&keys).await.unwrap(), [101, 100]);
        node.stop().await;
    });
}

#[test]
fn r84_commits_that_nobody_waits_for_gather_a_while() {
    paused(async {
        let world = World::new();
        let node = plan(&world).start().await;
        for n in 0..60 {
            assert_eq!(code(&node.run(note("a", n)).await), "Ok");
        }
        assert_eq!(node.faults.calls(Call::SaveSnapshots), 0);
        pass(Duration::from_millis(50)).await;
        assert_eq!(node.faults.calls(Call::SaveSnapshots), 1);
        assert_eq!(
            world.store.versions(&[key("nasty", "a")]).await.unwrap(),
            [60]
        );
        node.stop().await;
    });
}

#[test]
fn r41_requests_are_written_at_every_64th_version_and_stay() {
    paused(async {
        let world = World::new();
        let node = plan(&world).start().await;
        let key = key("nasty", "a");
        let mut written = None;
        for version in 1..=WRITTEN_EVERY * 2 + 3 {
            let request = note("a", version).request_id(format!("r-{version}"));
            assert_eq!(code(&node.handle.submit(request).await), "Ok");
            let found = world.store.find(&key).await.unwrap().unwrap();
            assert_eq!(found.version, version);
            if version.is_multiple_of(WRITTEN_EVERY) {
                assert_ne!(found.recent_requests, written);
                let mut set = RecentRequests::new(256);
                set.remember_json(found.recent_requests.as_ref().unwrap());
                assert_eq!(set.len() as u64, version);
                written = found.recent_requests;
            } else {
                assert_eq!(found.recent_requests, written, "version {version}");
            }
        }
        node.stop().await;
    });
}

#[test]
fn r80_entries_of_another_node_are_read_from_the_log_before_those_that_follow() {
    paused(async {
        let world = World::new();
        let mut other = plan(&world);
        other.name = "n-2";
        // Two nodes commit to one partition; each hands its own entries to its own runners.
        let (node, other) = (plan(&world).start().await, other.start().await);
        for n in 0..40 {
            let (here, there) = match n % 3 {
                0 => (&node, &other),
                _ => (&other, &node),
            };
            let answer = here.run(note(&format!("x-{n}"), n)).await;
            assert_eq!(code(&answer), "Ok");
            let answer = there.handle.submit(note(&format!("y-{n}"), n)).await;
            assert_eq!(code(&answer), "Ok");
        }
        pass(Duration::from_secs(1)).await;
        for n in 0..40 {
            let keys = ["x", "y"].map(|id| key("nasty", &format!("{id}-{n}")));
            assert_eq!(world.store.versions(&keys).await.unwrap(), [1, 1]);
        }
        assert_eq!(node.metric("wow_subscription_failures_total", &[]), 0.0);
        node.stop().await;
        other.stop().await;
    });
}

#[test]
fn r84_storage_that_is_away_holds_up_snapshots_and_nothing_else() {
    paused(async {
        let world = World::new();
        let node = plan(&world).start().await;
        let calls = [Call::SaveSnapshots, Call::SaveCheckpoint, Call::Heads];
        node.faults
            .always(&calls, wow_kernel::faults::Fault::Refuse);
        for n in 0..10 {
            assert_eq!(code(&node.run(note("a", n)).await), "Ok");
        }
        pass(Duration::from_secs(60)).await;
        // Tried again, with growing pauses.
        let tries = node.faults.calls(Call::SaveSnapshots);
        assert!((10..30).contains(&tries), "{tries}");
        node.faults.heal();
        let answer = node.handle.submit(note("a", 10)).await.unwrap();
        assert_eq!(
            (answer.stage, answer.aggregate_version),
            (Stage::Snapshot, Some(11))
        );
        node.stop().await;
    });
}
