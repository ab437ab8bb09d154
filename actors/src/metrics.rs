//! Every metric of the running system: names, help, labels. Labels come from closed sets.
//!
//! The registry is handed in. What is a count of the moment (lanes, permits) is read when it is
//! asked for, not kept beside the truth.

use std::sync::{Arc, Weak};
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};
use wow_kernel::command::BuiltCommand;
use wow_kernel::error::{Bound, CommandError};
use wow_kernel::id::AggregateType;
use wow_kernel::ports::KernelObserver;
use wow_kernel::router::FallbackReason;
use wow_kernel::wait::Stage;

use crate::outcome::Answer;
use crate::shared::Shared;

/// Looked up for every command.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// From half a millisecond to half a minute.
const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0,
];

/// The counters of the running system.
#[derive(Debug)]
pub struct Metrics {
    commands: IntCounterVec,
    /// The same for the types known at the start, without a look-up by label.
    commands_of: HashMap<AggregateType, [IntCounter; OUTCOMES.len()]>,
    command_duration: [Histogram; Stage::ALL.len()],
    refused: IntCounterVec,
    conflicts: IntCounter,
    outcomes_unknown: IntCounter,
    snapshots_ignored: IntCounter,
    slow_turn: Histogram,
    sharing: Sharing,
    lanes_passivated: IntCounter,
    subscription_failures: IntCounterVec,
    saga_rejections: IntCounterVec,
    signals_lost: IntCounter,
    pub(crate) waits_open: IntGauge,
}

/// What there is to know of several nodes on one database.
#[derive(Debug)]
struct Sharing {
    fallbacks: IntCounterVec,
    forwards: IntCounterVec,
    members: IntGauge,
    partitions_run: IntGauge,
    ownership_changes: IntCounterVec,
    renewal_failures: IntCounter,
}

impl Sharing {
    fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            fallbacks: counters(
                registry,
                "wow_local_fallbacks_total",
                "Commands run here though another node should run them, by reason.",
                &["reason"],
            )?,
            forwards: counters(
                registry,
                "wow_forwards_total",
                "Commands sent to the owner of their partition, by whether it answered.",
                &["outcome"],
            )?,
            members: gauge_of(
                registry,
                "wow_members",
                "Live members of the service, as this node last saw them; 0 where storage is its own.",
            )?,
            partitions_run: gauge_of(
                registry,
                "wow_partitions_run",
                "Partitions whose subscriptions run here.",
            )?,
            ownership_changes: counters(
                registry,
                "wow_partition_ownership_changes_total",
                "Partitions that this node has taken, handed over in order, or lost.",
                &["change"],
            )?,
            renewal_failures: register(
                registry,
                IntCounter::new(
                    "wow_lease_renewal_failures_total",
                    "Renewals of this node's lease that failed.",
                )?,
            )?,
        })
    }
}

fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn gauge_of(registry: &Registry, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
    register(registry, IntGauge::new(name, help)?)
}

impl Metrics {
    /// Registers every metric.
    ///
    /// # Errors
    /// When a name is registered already.
    pub fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counters =
            |name: &str, help: &str, labels: &[&str]| counters(registry, name, help, labels);
        let counter = |name: &str, help: &str| {
            register(registry, IntCounter::with_opts(Opts::new(name, help))?)
        };
        let durations = durations(registry)?;
        let slow_turn = HistogramOpts::new(
            "wow_slow_turn_seconds",
            "Turns of command functions of 100 ms and more, which hold up other lanes.",
        );
        Ok(Self {
            commands: counters(
                "wow_commands_total",
                "Commands that a lane has run, by what became of them.",
                &["aggregate_type", "outcome"],
            )?,
            commands_of: HashMap::default(),
            command_duration: Stage::ALL
                .map(|stage| durations.with_label_values(&[stage.as_str()])),
            refused: counters(
                "wow_commands_refused_total",
                "Commands refused at once as busy, by the bound that was reached.",
                &["reason"],
            )?,
            conflicts: counter(
                "wow_append_conflicts_total",
                "Appends that met another commit, and whose command was decided again.",
            )?,
            outcomes_unknown: counter(
                "wow_append_outcomes_unknown_total",
                "Appends whose outcome had to be looked up.",
            )?,
            snapshots_ignored: counter(
                "wow_snapshots_ignored_total",
                "Snapshots that could not be read, or were of another state revision.",
            )?,
            slow_turn: register(registry, Histogram::with_opts(slow_turn)?)?,
            sharing: Sharing::register(registry)?,
            lanes_passivated: counter(
                "wow_lanes_passivated_total",
                "Lanes ended because they were idle, or least recently used.",
            )?,
            subscription_failures: counters(
                "wow_subscription_failures_total",
                "Batches or entries that a subscription has to try again.",
                &["subscription"],
            )?,
            saga_rejections: counters(
                "wow_saga_rejections_total",
                "Commands of a saga that were refused for good, and that it has no answer to.",
                &["subscription"],
            )?,
            signals_lost: counter(
                "wow_signals_lost_total",
                "Signals that found no room; their callers look at storage instead.",
            )?,
            waits_open: gauge_of(
                registry,
                "wow_waits_open",
                "Callers waiting for stages after PROCESSED.",
            )?,
        })
    }

    /// Prepares the counters of every type, so that counting looks nothing up by label.
    #[must_use]
    pub(crate) fn for_types<'a>(mut self, types: impl Iterator<Item = &'a AggregateType>) -> Self {
        for aggregate_type in types {
            let counters = OUTCOMES.map(|outcome| {
                self.commands
                    .with_label_values(&[aggregate_type.as_str(), outcome])
            });
            self.commands_of.insert(aggregate_type.clone(), counters);
        }
        self
    }

    /// A lane is done with a command; none says that it failed in an unknown way.
    pub(crate) fn command_done(&self, command: &BuiltCommand, answer: Option<&Answer>) {
        if let Some(Answer::Failed(CommandError::Busy { bound })) = answer {
            self.refused(*bound);
        }
        if let Some(counters) = self.commands_of.get(&command.key().aggregate_type) {
            counters[outcome_index(answer)].inc();
        }
    }

    pub(crate) fn caller_answered(&self, stage: Stage, took: Duration) {
        // `Stage::ALL` is in the order of the variants.
        self.command_duration[stage as usize].observe(took.as_secs_f64());
    }

    pub(crate) fn refused(&self, bound: Bound) {
        let reason = match bound {
            Bound::LaneQueue => "lane_queue",
            Bound::InFlight => "in_flight",
            Bound::Waiters => "waiters",
            Bound::LogWriter => "log_writer",
        };
        self.refused.with_label_values(&[reason]).inc();
    }

    pub(crate) fn fallback(&self, reason: FallbackReason) {
        let reason = match reason {
            FallbackReason::NoOwner => "no_owner",
            FallbackReason::NotSent => "not_sent",
            FallbackReason::NotOwner => "not_owner",
            FallbackReason::NotCapable => "not_capable",
            FallbackReason::ForwardsFull => "forwards_full",
        };
        self.sharing.fallbacks.with_label_values(&[reason]).inc();
    }

    pub(crate) fn forwarded(&self, answered: bool) {
        let outcome = match answered {
            true => "answered",
            false => "no_answer",
        };
        self.sharing.forwards.with_label_values(&[outcome]).inc();
    }

    pub(crate) fn lanes_passivated(&self, ended: usize) {
        self.lanes_passivated.inc_by(ended as u64);
    }

    pub(crate) fn subscription_failed(&self, subscription: &str) {
        self.subscription_failures
            .with_label_values(&[subscription])
            .inc();
    }

    pub(crate) fn saga_rejection(&self, saga: &str) {
        self.saga_rejections.with_label_values(&[saga]).inc();
    }

    pub(crate) fn members(&self, live: usize) {
        self.sharing.members.set(gauge(live));
    }

    pub(crate) fn partitions_run(&self, count: usize) {
        self.sharing.partitions_run.set(gauge(count));
    }

    pub(crate) fn ownership_changed(&self, change: OwnershipChange) {
        let change = match change {
            OwnershipChange::Taken => "taken",
            OwnershipChange::HandedOver => "handed_over",
            OwnershipChange::Lost => "lost",
        };
        self.sharing
            .ownership_changes
            .with_label_values(&[change])
            .inc();
    }

    pub(crate) fn renewal_failed(&self) {
        self.sharing.renewal_failures.inc();
    }

    pub(crate) fn signals_lost(&self) {
        self.signals_lost.inc();
    }
}

fn durations(registry: &Registry) -> Result<HistogramVec, prometheus::Error> {
    let options = HistogramOpts::new(
        "wow_command_duration_seconds",
        "Time from submission until the caller was answered, by the stage it waited for.",
    );
    let options = options.buckets(SECONDS.to_vec());
    register(registry, HistogramVec::new(options, &["stage"])?)
}

/// How the ownership of a partition changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnershipChange {
    /// This node runs it from now on.
    Taken,
    /// This node has given it up in order.
    HandedOver,
    /// Another has it, or this node can't know that it still owns it.
    Lost,
}

/// What becomes of commands, as labels.
const OUTCOMES: [&str; 5] = ["committed", "duplicate", "unchanged", "rejected", "failed"];

fn outcome_index(answer: Option<&Answer>) -> usize {
    match answer {
        Some(Answer::Committed { .. }) => 0,
        Some(Answer::Known { .. }) => 1,
        Some(Answer::Unchanged { .. }) => 2,
        Some(Answer::Failed(CommandError::Rejected(_))) => 3,
        Some(Answer::Failed(_)) | None => 4,
    }
}

impl KernelObserver for Metrics {
    fn append_conflict(&self) {
        self.conflicts.inc();
    }

    fn outcome_unknown(&self) {
        self.outcomes_unknown.inc();
    }

    fn snapshot_ignored(&self) {
        self.snapshots_ignored.inc();
    }

    fn slow_turn(&self, _aggregate_type: &str, _command_type: &str, took: Duration) {
        self.slow_turn.observe(took.as_secs_f64());
    }
}

fn register<C: Collector + Clone + 'static>(
    registry: &Registry,
    metric: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// Reads what is a count of the moment, when it is asked for.
pub(crate) struct Moment {
    shared: Weak<Shared>,
    lanes: IntGaugeVec,
    state_bytes: IntGauge,
    in_flight: IntGauge,
}

impl Moment {
    pub(crate) fn register(
        registry: &Registry,
        shared: &Arc<Shared>,
    ) -> Result<(), prometheus::Error> {
        let lanes = Opts::new(
            "wow_lanes",
            "Live lanes, by whether they have commands in flight.",
        );
        registry.register(Box::new(Self {
            shared: Arc::downgrade(shared),
            lanes: IntGaugeVec::new(lanes, &["state"])?,
            state_bytes: IntGauge::new(
                "wow_state_bytes",
                "What the cached states take in memory, roughly.",
            )?,
            in_flight: IntGauge::new(
                "wow_commands_in_flight",
                "Commands between admission and the end of what follows their commit.",
            )?,
        }))
    }
}

impl Collector for Moment {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.lanes.desc();
        all.extend(self.state_bytes.desc());
        all.extend(self.in_flight.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        if let Some(shared) = self.shared.upgrade() {
            let busy = shared.directory.busy_lanes();
            let idle = shared.directory.lanes().saturating_sub(busy);
            self.lanes.with_label_values(&["busy"]).set(gauge(busy));
            self.lanes.with_label_values(&["idle"]).set(gauge(idle));
            self.state_bytes.set(gauge(shared.directory.state_bytes()));
            self.in_flight.set(gauge(shared.permits.taken()));
        }
        let mut all = self.lanes.collect();
        all.extend(self.state_bytes.collect());
        all.extend(self.in_flight.collect());
        all
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
