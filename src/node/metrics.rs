//! What storage tells, as metrics; and which build this is.

use std::fmt;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use crate::storage::{ReadBatch, StorageObserver, WrittenBatch};

/// From a tenth of a millisecond to ten seconds.
const SECONDS: [f64; 13] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0,
];

/// Powers of two up to a full batch.
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Counts what storage does.
pub(super) struct StorageMetrics {
    batch_entries: Histogram,
    batch_seconds: HistogramVec,
    queue: IntGauge,
    read_questions: HistogramVec,
    read_seconds: HistogramVec,
    read_failures: IntCounterVec,
}

impl fmt::Debug for StorageMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageMetrics").finish_non_exhaustive()
    }
}

impl StorageMetrics {
    pub(super) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let sizes = |name: &str, help: &str| HistogramOpts::new(name, help).buckets(SIZES.to_vec());
        let times =
            |name: &str, help: &str| HistogramOpts::new(name, help).buckets(SECONDS.to_vec());
        let metrics = Self {
            batch_entries: Histogram::with_opts(sizes(
                "wow_storage_batch_entries",
                "Log entries in one batch of the log writer.",
            ))?,
            batch_seconds: HistogramVec::new(
                times(
                    "wow_storage_batch_seconds",
                    "How long a batch of the log writer took, by how it ended.",
                ),
                &["outcome"],
            )?,
            queue: IntGauge::new(
                "wow_storage_writer_queue",
                "What waited for the log writer when it last began a batch.",
            )?,
            read_questions: HistogramVec::new(
                sizes(
                    "wow_storage_read_questions",
                    "Questions that one query answered, by kind.",
                ),
                &["kind"],
            )?,
            read_seconds: HistogramVec::new(
                times(
                    "wow_storage_read_seconds",
                    "How long a query took, by kind.",
                ),
                &["kind"],
            )?,
            read_failures: IntCounterVec::new(
                Opts::new(
                    "wow_storage_read_failures_total",
                    "Queries without an answer, by kind.",
                ),
                &["kind"],
            )?,
        };
        registry.register(Box::new(metrics.batch_entries.clone()))?;
        registry.register(Box::new(metrics.batch_seconds.clone()))?;
        registry.register(Box::new(metrics.queue.clone()))?;
        registry.register(Box::new(metrics.read_questions.clone()))?;
        registry.register(Box::new(metrics.read_seconds.clone()))?;
        registry.register(Box::new(metrics.read_failures.clone()))?;
        Ok(metrics)
    }
}

#[allow(clippy::cast_precision_loss, reason = "batches are small")]
impl StorageObserver for StorageMetrics {
    fn batch_written(&self, batch: &WrittenBatch) {
        self.batch_entries.observe(batch.entries as f64);
        self.batch_seconds
            .with_label_values(&[batch.outcome.as_str()])
            .observe(batch.elapsed.as_secs_f64());
    }

    fn writer_queue(&self, waiting: usize) {
        self.queue.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    fn batch_read(&self, read: &ReadBatch) {
        let kind = &[read.kind.as_str()];
        self.read_questions
            .with_label_values(kind)
            .observe(read.questions as f64);
        self.read_seconds
            .with_label_values(kind)
            .observe(read.elapsed.as_secs_f64());
        if !read.answered {
            self.read_failures.with_label_values(kind).inc();
        }
    }
}

/// Says which build this is.
pub(super) fn register_build(registry: &Registry) -> Result<(), prometheus::Error> {
    let opts = Opts::new("wow_build_info", "Always 1; the version is a label.");
    let build = IntGaugeVec::new(opts, &["version"])?;
    build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
    registry.register(Box::new(build))
}
