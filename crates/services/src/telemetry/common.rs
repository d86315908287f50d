//! The metrics that every service has, and how metrics are named and written, by Prometheus' rules: base units, `_total`
//! for counters, few values a label.

use std::fmt;
use std::sync::atomic::AtomicU64;

use lastcall_event::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode as write;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use super::{Metrics, Position};
use crate::kafka::Key;

/// Labels: one source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Source {
    source: String,
}

impl Source {
    /// The source of a partition.
    pub fn of(key: &Key) -> Self {
        Self { source: key.source.to_string() }
    }
}

/// Labels: one partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Partition {
    source: String,
    partition: i32,
}

impl Partition {
    /// Of a position.
    pub fn of(position: &Position) -> Self {
        Self { source: position.source.clone(), partition: position.partition }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: String,
}

/// A counter of seconds.
pub type Seconds = Counter<f64, AtomicU64>;

/// A registry in which each metric has the text of its service's table.
pub struct Named<'a> {
    registry: &'a mut Registry,
    prefix: &'static str,
    table: &'static [(&'static str, &'static str, &'static str)],
}

impl<'a> Named<'a> {
    /// For the metrics of one service.
    pub fn new<M: Metrics>(registry: &'a mut Registry) -> Self {
        Self { registry, prefix: M::PREFIX, table: M::TABLE }
    }

    /// Adds a metric: its name without the service's prefix.
    pub fn add(&mut self, name: &str, metric: impl Metric) {
        let name = format!("{}_{name}", self.prefix);
        let what = self.table.iter().find(|(known, _, _)| *known == name).map_or("", |(_, _, what)| *what);
        self.registry.register(name, what, metric);
    }
}

/// Counters of what was polled, of the group, of errors.
#[derive(Default)]
pub struct Common {
    polled_records: Family<Source, Counter>,
    polled_bytes: Family<Source, Counter>,
    rebalances: Counter,
    paused_seconds: Family<Source, Seconds>,
    errors: Family<Code, Counter>,
}

impl Common {
    pub(super) fn polled(&self, key: &Key, records: u64, bytes: u64) {
        self.polled_records.get_or_create(&Source::of(key)).inc_by(records);
        self.polled_bytes.get_or_create(&Source::of(key)).inc_by(bytes);
    }

    pub(super) fn rebalanced(&self) {
        self.rebalances.inc();
    }

    pub(super) fn paused(&self, key: &Key, seconds: f64) {
        self.paused_seconds.get_or_create(&Source::of(key)).inc_by(seconds);
    }

    pub(super) fn failed(&self, code: &str) {
        self.errors.get_or_create(&Code { code: code.to_owned() }).inc();
    }

    fn register(&self, registry: &mut Named<'_>) {
        registry.add("polled_records", self.polled_records.clone());
        registry.add("polled_bytes", self.polled_bytes.clone());
        registry.add("rebalances", self.rebalances.clone());
        registry.add("paused_seconds", self.paused_seconds.clone());
        registry.add("errors", self.errors.clone());
    }
}

/// The counters, and what the partitions say now: one that went to another process is not told any more.
pub(super) fn encode<M: Metrics>(
    metrics: &M,
    out: &mut String,
    positions: &[Position],
    now: Timestamp,
) -> fmt::Result {
    let lag: Family<Partition, Gauge> = Family::default();
    let delay: Family<Partition, Gauge<f64, AtomicU64>> = Family::default();
    for p in positions {
        lag.get_or_create(&Partition::of(p)).set(p.lag);
        let age = p.newest.filter(|_| p.lag > 0).map_or(0, |at| now.0.saturating_sub(at.0).max(0));
        delay.get_or_create(&Partition::of(p)).set(age as f64 / 1000.0);
    }
    let owned: Gauge = Gauge::default();
    owned.set(i64::try_from(positions.len()).unwrap_or(i64::MAX));
    let mut registry = Registry::default();
    let mut named = Named::new::<M>(&mut registry);
    metrics.common().register(&mut named);
    metrics.register(&mut named, positions);
    named.add("partitions", owned);
    named.add("lag", lag);
    named.add("event_delay_seconds", delay);
    write(out, &registry)
}
