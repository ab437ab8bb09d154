//! What a member does about its partitions: takes, starts, hands over, releases and loses them, as
//! a look has shown (R72 to R74).

use std::sync::Arc;

use wow_kernel::id::PartitionNo;
use wow_kernel::membership::Repairs;
use wow_kernel::ports::{MemberState, PartitionLease};
use wow_kernel::router::PartitionOwner;

use super::{Held, Work};
use crate::metrics::OwnershipChange;
use crate::tenure::{Tenure, start_runners};

impl Work {
    /// Does what a look asks for; answers whether nothing is left to do.
    pub(super) async fn repair(&mut self, repairs: Repairs) -> bool {
        let is_whole = repairs.is_whole();
        self.lose(&repairs.lost, "another node has taken it");
        // A node that stops keeps what it runs until those in flight are done, for their callers
        // wait for what follows; then it releases all at once.
        if self.me.state == MemberState::Live {
            self.hand_over(&repairs.hand_over);
            self.release(&repairs.release).await;
        }
        let taken = self.take(&repairs.take).await;
        let is_taken = taken.len() == repairs.take.len();
        let mut starting = repairs.start;
        starting.extend(taken);
        // One that is being given up, and should be ours again, starts anew when that is done.
        starting.retain(|lease| !self.held.contains_key(&lease.partition));
        let is_started = self.start(&starting).await;
        self.publish(repairs.owners);
        let runs_all = is_whole || (is_taken && is_started && repairs.awaited.is_empty());
        self.shared.set_whole(runs_all);
        is_whole && self.held.values().all(|held| held.ending_since.is_none())
    }

    /// The routing table: what the leases say, and what this node runs since.
    pub(super) fn publish(&self, mut owners: Vec<PartitionOwner>) {
        for (at, owner) in owners.iter_mut().enumerate() {
            let partition = u32::try_from(at).map(PartitionNo).ok();
            let runs = partition
                .and_then(|partition| self.held.get(&partition))
                .is_some_and(|held| held.ending_since.is_none());
            match (runs, &*owner) {
                (true, _) => *owner = PartitionOwner::Here,
                (false, PartitionOwner::Here) => *owner = PartitionOwner::Unknown,
                (false, _) => {}
            }
        }
        self.shared.routing.set_owners(owners);
        self.shared.metrics.partitions_run(self.held.len());
    }

    pub(super) async fn take(&self, free: &[PartitionLease]) -> Vec<PartitionLease> {
        if free.is_empty() {
            return Vec::new();
        }
        match self.config.leases.take(&self.me, free).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "partitions can't be taken yet");
                Vec::new()
            }
        }
    }

    /// Starts what follows the log in these partitions; whether that is done.
    pub(super) async fn start(&mut self, leases: &[PartitionLease]) -> bool {
        if leases.is_empty() {
            return true;
        }
        let tenures: Vec<_> = leases
            .iter()
            .map(|lease| Tenure::new(&self.shared, lease.partition, lease.epoch))
            .collect();
        if let Err(error) = start_runners(&self.shared, &tenures, &self.arbiters).await {
            tracing::warn!(%error, "the subscriptions of partitions can't be started yet");
            return false;
        }
        for tenure in tenures {
            tracing::info!(partition_id = %tenure.partition, epoch = tenure.epoch, "partition taken");
            self.shared
                .metrics
                .ownership_changed(OwnershipChange::Taken);
            let held = Held {
                tenure,
                ending_since: None,
            };
            self.held.insert(held.tenure.partition, held);
        }
        self.hint_everyone();
        true
    }

    /// Tells the runners of these partitions to finish; they are released when that is done.
    pub(super) fn hand_over(&mut self, partitions: &[PartitionNo]) {
        let now = self.shared.clock.monotonic();
        for partition in partitions {
            if let Some(held) = self.held.get_mut(partition)
                && held.ending_since.is_none()
            {
                held.ending_since = Some(now);
                held.tenure.give_up();
            }
        }
    }

    /// Ends once a partition that is being given up has no runner any more, or has had its time.
    pub(super) async fn given_up(&self) {
        let now = self.shared.clock.monotonic();
        let ending = self.held.values().filter_map(|held| {
            let end = held.ending_since? + self.config.hand_over_timeout;
            let tenure = Arc::clone(&held.tenure);
            let limit = self.shared.clock.sleep(end.saturating_sub(now));
            Some(Box::pin(async move {
                tokio::select! {
                    () = tenure.runners.all_ended() => {}
                    () = limit => {}
                }
            }))
        });
        let ending: Vec<_> = ending.collect();
        match ending.is_empty() {
            true => std::future::pending().await,
            false => {
                futures_util::future::select_all(ending).await;
            }
        }
    }

    pub(super) async fn release_given_up(&mut self) {
        let now = self.shared.clock.monotonic();
        let limit = self.config.hand_over_timeout;
        let mut done = Vec::new();
        for (partition, held) in &self.held {
            let Some(since) = held.ending_since else {
                continue;
            };
            let ended = held.tenure.runners.have_ended();
            if ended || now >= since + limit {
                if !ended {
                    // What is still running is held by the log's keys and by its epoch.
                    tracing::warn!(
                        partition_id = %partition,
                        "subscriptions had not ended when the partition was handed over"
                    );
                }
                let took = now.saturating_sub(since);
                tracing::info!(partition_id = %partition, epoch = held.tenure.epoch, ?took, "partition handed over");
                done.push(*partition);
            }
        }
        for partition in &done {
            if let Some(held) = self.held.remove(partition) {
                held.tenure.end();
                self.shared
                    .metrics
                    .ownership_changed(OwnershipChange::HandedOver);
            }
        }
        self.release(&done).await;
    }

    pub(super) async fn release(&self, partitions: &[PartitionNo]) {
        if partitions.is_empty() {
            return;
        }
        // One that fails is found by the next look: ours, not run, and another's to be.
        match self.config.leases.release(&self.me, partitions).await {
            Ok(()) => self.hint_everyone(),
            Err(error) => tracing::warn!(%error, "partitions can't be released yet"),
        }
    }

    pub(super) fn hint_everyone(&self) {
        if let Some(peers) = &self.shared.peers {
            peers.hint_ownership();
        }
    }

    /// Stops acting as an owner where the lease may have run out (R74).
    pub(super) fn demote_if_late(&mut self) {
        if self.shared.clock.monotonic() >= self.valid_until {
            self.lose_all("the lease couldn't be renewed in time");
        }
    }

    pub(super) fn lose_all(&mut self, why: &'static str) {
        let all: Vec<_> = self.held.keys().copied().collect();
        self.lose(&all, why);
        self.shared.set_whole(false);
        let count = self.shared.kernel.limits.partitions as usize;
        self.publish(vec![PartitionOwner::Unknown; count]);
    }

    pub(super) fn lose(&mut self, partitions: &[PartitionNo], why: &'static str) {
        for partition in partitions {
            let Some(held) = self.held.remove(partition) else {
                continue;
            };
            let epoch = held.tenure.epoch;
            tracing::warn!(partition_id = %partition, epoch, why, "partition lost");
            held.tenure.end();
            self.shared.metrics.ownership_changed(OwnershipChange::Lost);
        }
    }
}
