//! What the recorder counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use lastcall_ledger::entry::PartitionBody;

use crate::kafka::Key;
use crate::telemetry::common::{Common, Named, Source};
use crate::telemetry::{self, Position};

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

/// What a recorder tells of itself.
pub type Telemetry = telemetry::Telemetry<Metrics>;

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

/// The recorder's counters.
pub struct Metrics {
    common: Common,
    records: Family<Source, Counter>,
    dead_letters: Family<Reason, Counter>,
    comparisons: Family<Result, Counter>,
    chunks: Family<Source, Counter>,
    heartbeats: Family<Source, Counter>,
    chunk_bytes: Histogram,
    append_seconds: Timing,
    lost_appends: Family<Source, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            common: Common::default(),
            records: Family::default(),
            dead_letters: Family::default(),
            comparisons: Family::default(),
            chunks: Family::default(),
            heartbeats: Family::default(),
            chunk_bytes: Histogram::new((10..27).step_by(2).map(|n| f64::from(1u32 << n))),
            append_seconds: Family::new_with_constructor(timing),
            lost_appends: Family::default(),
        }
    }
}

fn timing() -> Histogram {
    Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

impl telemetry::Metrics for Metrics {
    const PREFIX: &'static str = "lastcall_record";
    const TABLE: &'static [(&'static str, &'static str, &'static str)] = &TABLE;
    const DONE: &'static str = "recorded";

    fn common(&self) -> &Common {
        &self.common
    }

    fn register(&self, registry: &mut Named<'_>, _: &[Position]) {
        registry.add("records", self.records.clone());
        registry.add("dead_letters", self.dead_letters.clone());
        registry.add("comparisons", self.comparisons.clone());
        registry.add("chunks", self.chunks.clone());
        registry.add("heartbeats", self.heartbeats.clone());
        registry.add("chunk_bytes", self.chunk_bytes.clone());
        registry.add("append_seconds", self.append_seconds.clone());
        registry.add("lost_appends", self.lost_appends.clone());
    }
}

impl Metrics {
    fn appended(&self, key: &Key, done: &Appended<'_>) {
        let outcome = if done.won { "won" } else { "lost" };
        self.append_seconds.get_or_create(&Outcome { outcome }).observe(done.seconds);
        if !done.won {
            self.lost_appends.get_or_create(&Source::of(key)).inc();
            return;
        }
        let Some(chunk) = done.body.and_then(PartitionBody::chunk) else {
            self.heartbeats.get_or_create(&Source::of(key)).inc();
            return;
        };
        self.chunks.get_or_create(&Source::of(key)).inc();
        self.records.get_or_create(&Source::of(key)).inc_by(chunk.balance.read);
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
}

impl Telemetry {
    /// An append was answered.
    pub fn appended(&self, key: &Key, done: &Appended<'_>) {
        self.own().appended(key, done);
        if let Some(next) = done.recorded {
            self.done(key, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use lastcall_contract::Digest;
    use lastcall_event::{Day, Timestamp};
    use lastcall_ledger::entry::{Balance, Build, Chunk, ControlRef, PartitionBody};
    use lastcall_ledger::position::{NextOffset, Range};
    use lastcall_ledger::tally::{Counts, Tally};

    use super::*;
    use crate::telemetry::{About, Told as _};

    fn telemetry() -> Telemetry {
        let about = About {
            service: "lastcall-record",
            version: "0",
            ledger: Some("l".to_owned()),
            topics: None,
            group: "g".to_owned(),
            started: Timestamp(0),
        };
        Telemetry::new(about, Duration::ZERO)
    }

    fn key() -> Key {
        Key { source: "calls".into(), partition: 3 }
    }

    fn chunk() -> Chunk {
        let counts = Counts { agreed: 3, disagreed: 1, ..Counts::default() };
        let tally = Tally {
            day: Day(1),
            tool: "t".into(),
            epoch: Digest::of(b""),
            cohort: None,
            agent: None,
            counts,
        };
        Chunk {
            range: Range { first: NextOffset(0), next: NextOffset(5) },
            control: ControlRef { seq: 1, digest: Digest::of(b"") },
            progress: lastcall_record::beginning(NextOffset(5), 1),
            files: Vec::new(),
            balance: Balance { read: 5, calls: 4, dead: 1, ..Balance::default() },
            unknown_fields: 0,
            dead_reasons: BTreeMap::from([("not_json".to_owned(), 1)]),
            calls: Vec::new(),
            tallies: vec![tally],
            exposure: Vec::new(),
            coverage: Vec::new(),
            losses: Vec::new(),
            oldest: None,
            newest: None,
            build: Build { lastcall: "0".to_owned(), comparator: 1 },
        }
    }

    /// The table in the docs is what is exported.
    #[test]
    fn every_metric_is_in_the_table_and_has_a_sample() {
        let t = telemetry();
        t.assigned(&key(), 0);
        t.rebalanced();
        t.polled(&key(), 1, 2, 1, Some(Timestamp(1)));
        t.failed("x", "y");
        t.seen(&key(), 5, 1);
        t.paused(&key(), true);
        t.paused(&key(), false);
        let body = PartitionBody::Chunk(Box::new(chunk()));
        for (won, recorded, body) in
            [(true, Some(1), Some(&body)), (true, Some(1), None), (false, None, None)]
        {
            t.appended(&key(), &Appended { won, recorded, seconds: 0.1, body, bytes: 1 });
        }
        let text = t.metrics();
        for (name, kind, _) in TABLE {
            assert!(text.contains(&format!("# TYPE {name} {kind}")), "{name} {kind}: {text}");
        }
        assert_eq!(text.matches("# TYPE").count(), TABLE.len(), "{text}");
        assert!(text.contains("lastcall_record_lag{source=\"calls\",partition=\"3\"} 4"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        let docs = include_str!("../../../../docs/src/kafka.md");
        for (name, kind, what) in TABLE {
            assert!(
                docs.contains(&format!("| `{name}` | {kind} | {what} |")),
                "| `{name}` | {kind} | {what} |"
            );
        }
    }
}
