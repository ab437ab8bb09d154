use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const PARTITIONS: u32 = 16;
const TTL: Duration = Duration::from_secs(10);

fn member(name: &str, state: MemberState, valid_for: Duration) -> Member {
    Member {
        name: NodeName::trusted(name),
        incarnation: Uuid::from_u128(name.bytes().map(u128::from).sum()),
        address: format!("{name}:9090"),
        state,
        protocol_min: 1,
        protocol_max: 1,
        valid_for,
    }
}

fn live(name: &str) -> Member {
    member(name, MemberState::Live, TTL)
}

fn lease(partition: u32, owner: Option<&Member>, epoch: u64) -> PartitionLease {
    PartitionLease {
        partition: PartitionNo(partition),
        owner: owner.map(|member| (member.name.clone(), member.incarnation)),
        epoch,
    }
}

fn repairs(
    me: &Member,
    members: &[Member],
    leases: &[PartitionLease],
    running: &[(u32, u64)],
) -> Repairs {
    let running = running
        .iter()
        .map(|(partition, epoch)| (PartitionNo(*partition), *epoch))
        .collect();
    Look {
        me,
        members,
        leases,
        partitions: PARTITIONS,
        running: &running,
    }
    .repairs()
}

/// The partitions that should be a member's.
fn share(of: &Member, members: &[Member]) -> BTreeSet<u32> {
    (0..PARTITIONS)
        .filter(|partition| {
            let names = members.iter().map(|member| &member.name);
            assigned(PartitionNo(*partition), names) == Some(&of.name)
        })
        .collect()
}

fn numbers(partitions: &[PartitionNo]) -> BTreeSet<u32> {
    partitions.iter().map(|partition| partition.0).collect()
}

fn of_leases(leases: &[PartitionLease]) -> BTreeSet<u32> {
    leases.iter().map(|lease| lease.partition.0).collect()
}

#[test]
fn r72_what_is_free_released_or_expired_is_taken_at_the_epoch_seen() {
    let (me, gone) = (live("a"), member("b", MemberState::Live, Duration::ZERO));
    let earlier_life = Member {
        incarnation: Uuid::from_u128(7),
        ..me.clone()
    };
    let leases = [
        lease(0, None, 3),
        lease(1, Some(&gone), 5),
        lease(2, Some(&earlier_life), 8),
    ];
    let repairs = repairs(&me, &[me.clone(), gone.clone()], &leases, &[]);
    assert_eq!(of_leases(&repairs.take), (0..PARTITIONS).collect());
    let epochs: Vec<_> = repairs.take[..4].iter().map(|lease| lease.epoch).collect();
    assert_eq!(epochs, [3, 5, 8, 0]);
    assert!(
        repairs
            .owners
            .iter()
            .all(|owner| *owner == PartitionOwner::Unknown)
    );
    assert!(!repairs.is_whole());
}

#[test]
fn r72_nothing_is_taken_from_a_live_member() {
    let (me, other) = (live("a"), live("b"));
    let members = [me.clone(), other.clone()];
    let leases: Vec<_> = (0..PARTITIONS)
        .map(|at| lease(at, Some(&other), 1))
        .collect();
    let repairs = repairs(&me, &members, &leases, &[]);
    assert_eq!(repairs.take, []);
    assert_eq!(numbers(&repairs.awaited), share(&me, &members));
    assert!(!repairs.is_whole());
    let peer = PartitionOwner::Peer(other.name);
    assert!(repairs.owners.iter().all(|owner| *owner == peer));
}

#[test]
fn r73_what_should_be_anothers_is_handed_over_and_what_is_not_run_released() {
    let (me, other) = (live("a"), live("b"));
    let members = [me.clone(), other.clone()];
    let leases: Vec<_> = (0..PARTITIONS).map(|at| lease(at, Some(&me), 1)).collect();
    let running: Vec<_> = (0..PARTITIONS / 2).map(|at| (at, 1)).collect();
    let repairs = repairs(&me, &members, &leases, &running);
    let theirs = share(&other, &members);
    let (run, idle): (BTreeSet<_>, BTreeSet<_>) =
        theirs.iter().partition(|at| **at < PARTITIONS / 2);
    assert_eq!(numbers(&repairs.hand_over), run);
    assert_eq!(numbers(&repairs.release), idle);
    let idle_of_ours: BTreeSet<_> = share(&me, &members)
        .into_iter()
        .filter(|at| *at >= PARTITIONS / 2)
        .collect();
    assert_eq!(of_leases(&repairs.start), idle_of_ours);
}

#[test]
fn r74_what_another_took_meanwhile_is_ended_at_once() {
    let (me, other) = (live("a"), live("b"));
    let members = [me.clone(), other.clone()];
    // Taken by another; taken again by this node itself, at another epoch; gone from storage.
    let leases = [lease(0, Some(&other), 2), lease(1, Some(&me), 3)];
    let repairs = repairs(&me, &members, &leases, &[(0, 1), (1, 1), (2, 1)]);
    assert_eq!(numbers(&repairs.lost), [0, 1, 2].into());
}

#[test]
fn a_draining_member_is_no_candidate_and_hands_all_over() {
    let me = member("a", MemberState::Draining, TTL);
    let other = live("b");
    let leases: Vec<_> = (0..PARTITIONS).map(|at| lease(at, Some(&me), 1)).collect();
    let running: Vec<_> = (0..PARTITIONS).map(|at| (at, 1)).collect();
    let ours = repairs(&me, &[me.clone(), other.clone()], &leases, &running);
    assert_eq!(numbers(&ours.hand_over), (0..PARTITIONS).collect());
    assert!(ours.is_whole());
    let theirs = repairs(&other, &[me.clone(), other.clone()], &leases, &[]);
    assert_eq!(numbers(&theirs.awaited), (0..PARTITIONS).collect());
    // With nobody left to take them they are released all the same.
    let alone = repairs(&me, std::slice::from_ref(&me), &leases, &running);
    assert_eq!(numbers(&alone.hand_over), (0..PARTITIONS).collect());
}

#[test]
fn a_dead_member_is_looked_for_when_its_lease_expires() {
    let me = member("a", MemberState::Live, Duration::from_secs(1));
    let members = [
        me.clone(),
        member("b", MemberState::Live, Duration::from_secs(7)),
        member("c", MemberState::Live, Duration::from_secs(4)),
        member("d", MemberState::Live, Duration::ZERO),
    ];
    let look = repairs(&me, &members, &[], &[]);
    assert_eq!(look.look_again_in, Some(Duration::from_secs(4)));
}

/// A cluster whose members look in any order, each doing what its look says.
#[derive(Debug, Default)]
struct Cluster {
    leases: Vec<PartitionLease>,
    running: HashMap<NodeName, HashMap<PartitionNo, u64>>,
}

impl Cluster {
    fn look(&mut self, me: &Member, members: &[Member]) {
        let running = self.running.entry(me.name.clone()).or_default();
        let look = Look {
            me,
            members,
            leases: &self.leases,
            partitions: PARTITIONS,
            running,
        };
        let repairs = look.repairs();
        for partition in repairs.lost.iter().chain(&repairs.hand_over) {
            running.remove(partition);
        }
        for partition in repairs.hand_over.iter().chain(&repairs.release) {
            let lease = self
                .leases
                .iter_mut()
                .find(|lease| lease.partition == *partition);
            lease.unwrap().owner = None;
        }
        for seen in repairs.take.iter().chain(&repairs.start) {
            let epoch = match repairs.take.contains(seen) {
                true => seen.epoch + 1,
                false => seen.epoch,
            };
            self.leases
                .retain(|lease| lease.partition != seen.partition);
            self.leases.push(lease(seen.partition.0, Some(me), epoch));
            running.insert(seen.partition, epoch);
        }
    }
}

proptest! {
    #[test]
    fn r71_and_r72_looks_in_any_order_settle_with_one_owner_each(
        order in prop::collection::vec(0..4_usize, 0..24),
        gone in 0..4_usize,
    ) {
        let all: Vec<_> = ["a", "b", "c", "d"].map(live).into();
        let mut cluster = Cluster::default();
        for at in order {
            cluster.look(&all[at], &all);
        }
        // One dies, and each of the others looks twice: one hands over, the other takes.
        let mut members = all.clone();
        members[gone].valid_for = Duration::ZERO;
        cluster.running.remove(&members[gone].name);
        let rest: Vec<_> = members.iter().filter(|member| !member.valid_for.is_zero()).collect();
        for _ in 0..2 {
            for me in &rest {
                cluster.look(me, &members);
            }
        }
        let alive: Vec<_> = rest.iter().map(|member| (*member).clone()).collect();
        for me in &rest {
            let runs = cluster.running.get(&me.name).cloned().unwrap_or_default();
            let runs: BTreeSet<_> = runs.keys().map(|partition| partition.0).collect();
            prop_assert_eq!(runs, share(me, &alive));
        }
    }
}
