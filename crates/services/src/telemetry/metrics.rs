//! Counters and gauges by Prometheus' rules: base units, `_total` for counters, few values a label.

use std::fmt;
use std::sync::atomic::AtomicU64;

use lastcall_event::Timestamp;
use lastcall_ledger::entry::PartitionBody;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Position;
use crate::record::Key;

/// Every metric: name, type, meaning. The guide's table is this one.
pub const TABLE: [(&str, &str, &str); 16] = [
    ("lastcall_record_polled_records", "counter", "Records polled from the broker, by source"),
    ("lastcall_record_polled_bytes", "counter", "Bytes of their values, by source"),
    ("lastcall_record_records", "counter", "Records in appended chunks, by source"),
    ("lastcall_record_dead_letters", "counter", "Dead letters in appended chunks, by source and reason"),
    ("lastcall_record_comparisons", "counter", "Comparisons in appended chunks, by source and result"),
    ("lastcall_record_chunks", "counter", "Chunks appended, by source"),
    ("lastcall_record_heartbeats", "counter", "Heartbeats appended, by source"),
    ("lastcall_record_chunk_bytes", "histogram", "Bytes of a chunk's files"),
    ("lastcall_record_append_seconds", "histogram", "Seconds that an append took, by outcome: won or lost"),
    ("lastcall_record_lost_appends", "counter", "Appends that another recorder won, by source"),
    ("lastcall_record_rebalances", "counter", "Assignments and revocations"),
    ("lastcall_record_paused_seconds", "counter", "Seconds that partitions were held back, by source"),
    ("lastcall_record_errors", "counter", "Errors that did not end the process, by code"),
    ("lastcall_record_partitions", "gauge", "Partitions that are this process's own"),
    ("lastcall_record_lag", "gauge", "Records that are not in the ledger yet, by source and partition"),
    (
        "lastcall_record_event_delay_seconds",
        "gauge",
        "Age of the newest message that was polled while more wait, by source and partition",
    ),
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    source: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    source: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Partition {
    source: String,
    partition: i32,
}

type Seconds = Counter<f64, AtomicU64>;
type Timing = Family<Outcome, Histogram, fn() -> Histogram>;

/// An append that was answered.
#[derive(Default)]
pub struct Appended<'a> {
    /// It is in the ledger, and this recorder's.
    pub won: bool,
    /// Where the partition stands then.
    pub recorded: Option<i64>,
    /// How long it took, with its files.
    pub seconds: f64,
    /// What was appended.
    pub body: Option<&'a PartitionBody>,
    /// Bytes of its files.
    pub bytes: u64,
}

pub(super) struct Metrics {
    polled_records: Family<Source, Counter>,
    polled_bytes: Family<Source, Counter>,
    records: Family<Source, Counter>,
    dead_letters: Family<Reason, Counter>,
    comparisons: Family<Result, Counter>,
    chunks: Family<Source, Counter>,
    heartbeats: Family<Source, Counter>,
    chunk_bytes: Histogram,
    append_seconds: Timing,
    lost_appends: Family<Source, Counter>,
    rebalances: Counter,
    paused_seconds: Family<Source, Seconds>,
    errors: Family<Code, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            polled_records: Family::default(),
            polled_bytes: Family::default(),
            records: Family::default(),
            dead_letters: Family::default(),
            comparisons: Family::default(),
            chunks: Family::default(),
            heartbeats: Family::default(),
            chunk_bytes: Histogram::new((10..27).step_by(2).map(|n| f64::from(1u32 << n))),
            append_seconds: Family::new_with_constructor(timing),
            lost_appends: Family::default(),
            rebalances: Counter::default(),
            paused_seconds: Family::default(),
            errors: Family::default(),
        }
    }
}

fn timing() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

fn source(key: &Key) -> Source {
    Source { source: key.source.to_string() }
}

impl Metrics {
    pub(super) fn polled(&self, key: &Key, records: u64, bytes: u64) {
        self.polled_records.get_or_create(&source(key)).inc_by(records);
        self.polled_bytes.get_or_create(&source(key)).inc_by(bytes);
    }

    pub(super) fn appended(&self, key: &Key, done: &Appended<'_>) {
        let outcome = if done.won { "won" } else { "lost" };
        self.append_seconds.get_or_create(&Outcome { outcome }).observe(done.seconds);
        if !done.won {
            self.lost_appends.get_or_create(&source(key)).inc();
            return;
        }
        let Some(chunk) = done.body.and_then(PartitionBody::chunk) else {
            self.heartbeats.get_or_create(&source(key)).inc();
            return;
        };
        self.chunks.get_or_create(&source(key)).inc();
        self.records.get_or_create(&source(key)).inc_by(chunk.balance.read);
        self.chunk_bytes.observe(done.bytes as f64);
        for (reason, count) in &chunk.dead_reasons {
            let labels = Reason { source: key.source.to_string(), reason: reason.clone() };
            self.dead_letters.get_or_create(&labels).inc_by(*count);
        }
        for (result, count) in chunk.tallies.iter().flat_map(|tally| tally.counts.by_result()) {
            if count > 0 {
                let labels = Result { source: key.source.to_string(), result: result.as_str() };
                self.comparisons.get_or_create(&labels).inc_by(count);
            }
        }
    }

    pub(super) fn rebalanced(&self) {
        self.rebalances.inc();
    }

    pub(super) fn paused(&self, key: &Key, seconds: f64) {
        self.paused_seconds.get_or_create(&source(key)).inc_by(seconds);
    }

    pub(super) fn failed(&self, code: &str) {
        self.errors.get_or_create(&Code { code: code.to_owned() }).inc();
    }

    /// The counters, and what the partitions say now: one that went to another recorder is not told any more.
    pub(super) fn encode(&self, out: &mut String, partitions: &[Position], now: Timestamp) -> fmt::Result {
        let lag: Family<Partition, Gauge> = Family::default();
        let delay: Family<Partition, Gauge<f64, AtomicU64>> = Family::default();
        for p in partitions {
            let labels = Partition { source: p.source.clone(), partition: p.partition };
            lag.get_or_create(&labels).set(p.lag);
            let age = p.newest.filter(|_| p.lag > 0).map_or(0, |at| now.0.saturating_sub(at.0).max(0));
            delay.get_or_create(&labels).set(age as f64 / 1000.0);
        }
        let owned: Gauge = Gauge::default();
        owned.set(i64::try_from(partitions.len()).unwrap_or(i64::MAX));
        let mut registry = Registry::default();
        macro_rules! add {
            ($name:expr, $metric:expr) => {
                let what =
                    TABLE.iter().find(|(known, _, _)| *known == $name).map_or("", |(_, _, what)| *what);
                registry.register($name, what, $metric);
            };
        }
        add!("lastcall_record_polled_records", self.polled_records.clone());
        add!("lastcall_record_polled_bytes", self.polled_bytes.clone());
        add!("lastcall_record_records", self.records.clone());
        add!("lastcall_record_dead_letters", self.dead_letters.clone());
        add!("lastcall_record_comparisons", self.comparisons.clone());
        add!("lastcall_record_chunks", self.chunks.clone());
        add!("lastcall_record_heartbeats", self.heartbeats.clone());
        add!("lastcall_record_chunk_bytes", self.chunk_bytes.clone());
        add!("lastcall_record_append_seconds", self.append_seconds.clone());
        add!("lastcall_record_lost_appends", self.lost_appends.clone());
        add!("lastcall_record_rebalances", self.rebalances.clone());
        add!("lastcall_record_paused_seconds", self.paused_seconds.clone());
        add!("lastcall_record_errors", self.errors.clone());
        add!("lastcall_record_partitions", owned);
        add!("lastcall_record_lag", lag);
        add!("lastcall_record_event_delay_seconds", delay);
        encode(out, &registry)
    }
}
