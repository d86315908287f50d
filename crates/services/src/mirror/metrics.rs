//! What the mirror counts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use lastcall_ledger::system_now;
use lastcall_mirror::{CandidateCounts, Mirror};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::telemetry::common::{Common, Named, Partition};
use crate::telemetry::{self, Position};

/// Every metric: name, type, meaning. The guide's table is this one.
pub const TABLE: [(&str, &str, &str); 23] = [
    ("lastcall_mirror_polled_records", "counter", "Messages polled from the upstream topic, by source"),
    ("lastcall_mirror_polled_bytes", "counter", "Bytes of their values, by source"),
    (
        "lastcall_mirror_messages",
        "counter",
        "Messages that the broker acknowledged, by kind: call, coverage, loss, clock, dead",
    ),
    ("lastcall_mirror_answers", "counter", "What candidates made of calls, by tool, contract and status"),
    ("lastcall_mirror_failures", "counter", "Why they gave no answer, by tool, contract and class"),
    (
        "lastcall_mirror_exchanges",
        "counter",
        "Requests that were begun, further tries included, by tool and contract",
    ),
    ("lastcall_mirror_retries", "counter", "Requests that were tried again, by tool and contract"),
    ("lastcall_mirror_on", "gauge", "1 while the tool's switch is on, by tool and contract"),
    (
        "lastcall_mirror_circuit_open",
        "gauge",
        "1 while a candidate that failed is left alone, by tool and contract",
    ),
    (
        "lastcall_mirror_waiting",
        "gauge",
        "Calls that wait for their tool's concurrency or rate, by tool and contract",
    ),
    (
        "lastcall_mirror_replay_seconds",
        "histogram",
        "Seconds from a call's start to its row, waiting included",
    ),
    (
        "lastcall_mirror_in_flight",
        "gauge",
        "Messages that are worked on, wait for their turn or for the broker",
    ),
    ("lastcall_mirror_held_bytes", "gauge", "Bytes of the budget that are taken"),
    (
        "lastcall_mirror_lost_records",
        "counter",
        "Upstream records that retention took before they were mirrored",
    ),
    ("lastcall_mirror_reloads", "counter", "Changes of the configuration that were taken over"),
    (
        "lastcall_mirror_configuration_refused",
        "gauge",
        "1 while the file of the configuration is not the one in use",
    ),
    ("lastcall_mirror_rebalances", "counter", "Assignments and revocations"),
    ("lastcall_mirror_paused_seconds", "counter", "Seconds that partitions were held back, by source"),
    ("lastcall_mirror_errors", "counter", "Errors that did not end the process, by code"),
    ("lastcall_mirror_partitions", "gauge", "Partitions that are this process's own"),
    ("lastcall_mirror_lag", "gauge", "Upstream records without an acknowledged row, by source and partition"),
    (
        "lastcall_mirror_event_delay_seconds",
        "gauge",
        "Age of the newest message that was polled while more wait, by source and partition",
    ),
    (
        "lastcall_mirror_through_age_seconds",
        "gauge",
        "How long ago the upstream was last known complete, by source and partition",
    ),
];

/// What a mirror tells of itself.
pub type Telemetry = telemetry::Telemetry<Metrics>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Candidate {
    tool: String,
    contract: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    tool: String,
    contract: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failure {
    tool: String,
    contract: String,
    class: &'static str,
}

/// The mirror's counters.
pub struct Metrics {
    common: Common,
    messages: Family<Kind, Counter>,
    candidates: OnceLock<Arc<Mirror>>,
    /// From a call's start to its row.
    pub replay_seconds: Histogram,
    /// Calls whose row is not acknowledged yet.
    pub in_flight: Gauge,
    /// Of the budget.
    pub held_bytes: Gauge,
    /// Upstream records that are gone.
    pub lost_records: Counter,
    /// Taken over.
    pub reloads: Counter,
    /// Not taken over.
    pub refused: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            common: Common::default(),
            messages: Family::default(),
            candidates: OnceLock::new(),
            replay_seconds: Histogram::new([
                0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
            ]),
            in_flight: Gauge::default(),
            held_bytes: Gauge::default(),
            lost_records: Counter::default(),
            reloads: Counter::default(),
            refused: Gauge::default(),
        }
    }
}

impl telemetry::Metrics for Metrics {
    const PREFIX: &'static str = "lastcall_mirror";
    const TABLE: &'static [(&'static str, &'static str, &'static str)] = &TABLE;
    const DONE: &'static str = "mirrored";

    fn common(&self) -> &Common {
        &self.common
    }

    fn register(&self, registry: &mut Named<'_>, positions: &[Position]) {
        let age: Family<Partition, Gauge<f64, AtomicU64>> = Family::default();
        let now = system_now();
        for p in positions {
            if let Some(through) = p.through {
                age.get_or_create(&Partition::of(p))
                    .set(now.0.saturating_sub(through.0).max(0) as f64 / 1000.0);
            }
        }
        registry.add("messages", self.messages.clone());
        let counts = self.candidates.get().map(|mirror| mirror.counts()).unwrap_or_default();
        of_candidates(registry, &counts);
        registry.add("replay_seconds", self.replay_seconds.clone());
        registry.add("in_flight", self.in_flight.clone());
        registry.add("held_bytes", self.held_bytes.clone());
        registry.add("lost_records", self.lost_records.clone());
        registry.add("reloads", self.reloads.clone());
        registry.add("configuration_refused", self.refused.clone());
        registry.add("through_age_seconds", age);
    }
}

impl Metrics {
    /// A message was acknowledged.
    pub fn acknowledged(&self, kind: &'static str) {
        self.messages.get_or_create(&Kind { kind }).inc();
    }

    /// What was acknowledged so far, by kind.
    pub fn messages(&self) -> BTreeMap<&'static str, u64> {
        let kinds = ["call", "coverage", "loss", "clock", "dead"];
        kinds.map(|kind| (kind, self.messages.get_or_create(&Kind { kind }).get())).into()
    }

    /// Whose counts are told beside these.
    pub fn candidates(&self, mirror: &Arc<Mirror>) {
        // Set once, at the start.
        let _ = self.candidates.set(mirror.clone());
    }
}

fn of_candidates(registry: &mut Named<'_>, counts: &[CandidateCounts]) {
    let answers: Family<Answer, Counter> = Family::default();
    let failures: Family<Failure, Counter> = Family::default();
    let [exchanges, retries]: [Family<Candidate, Counter>; 2] = Default::default();
    let [on, open, waiting]: [Family<Candidate, Gauge>; 3] = Default::default();
    for count in counts {
        let contract =
            if count.rerun { format!("rerun of {}", count.contract) } else { count.contract.clone() };
        let of = Candidate { tool: count.tool.clone(), contract };
        let Candidate { tool, contract } = &of;
        for (status, n) in &count.by_status {
            let labels = Answer { tool: tool.clone(), contract: contract.clone(), status: status.as_str() };
            answers.get_or_create(&labels).inc_by(*n);
        }
        for (class, n) in &count.by_class {
            let labels = Failure { tool: tool.clone(), contract: contract.clone(), class };
            failures.get_or_create(&labels).inc_by(*n);
        }
        exchanges.get_or_create(&of).inc_by(count.exchanges);
        retries.get_or_create(&of).inc_by(count.retries);
        on.get_or_create(&of).set(count.on.into());
        open.get_or_create(&of).set(count.open.into());
        waiting.get_or_create(&of).set(i64::try_from(count.waiting).unwrap_or(i64::MAX));
    }
    registry.add("answers", answers);
    registry.add("failures", failures);
    registry.add("exchanges", exchanges);
    registry.add("retries", retries);
    registry.add("on", on);
    registry.add("circuit_open", open);
    registry.add("waiting", waiting);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::time::Duration;

    use lastcall_event::{Status, Timestamp};
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::kafka::Key;
    use crate::telemetry::{About, Told};

    /// The table in the docs is what is exported.
    #[test]
    fn every_metric_is_in_the_table_and_has_a_sample() {
        let about = About {
            service: "lastcall-mirror",
            version: "0",
            ledger: None,
            topics: Some(("tool-calls".to_owned(), "mirrored-calls".to_owned())),
            group: "g".to_owned(),
            started: Timestamp(0),
        };
        let t = Telemetry::new(about, Duration::ZERO);
        let count = CandidateCounts {
            tool: "t".to_owned(),
            contract: "t@2".to_owned(),
            rerun: false,
            by_status: vec![(Status::Ok, 3)],
            by_class: vec![("connection", 1)],
            exchanges: 4,
            retries: 0,
            seconds: 1.0,
            timed: 3,
            open: false,
            waiting: 2,
            on: true,
        };
        let key = Key { source: "tool-calls".into(), partition: 3 };
        t.assigned(&key, 0);
        t.rebalanced();
        t.polled(&key, 1, 2, 1, Some(Timestamp(1)));
        t.failed("x", "y");
        t.seen(&key, 5, 1);
        t.paused(&key, true);
        t.paused(&key, false);
        t.through(&key, Timestamp(5));
        t.own().acknowledged("call");
        t.own().replay_seconds.observe(0.1);
        let mut text = String::new();
        let mut registry = Registry::default();
        of_candidates(&mut Named::new::<Metrics>(&mut registry), &[count]);
        encode(&mut text, &registry).unwrap();
        assert!(
            text.contains("lastcall_mirror_answers_total{tool=\"t\",contract=\"t@2\",status=\"ok\"} 3"),
            "{text}"
        );
        // Of candidates nothing is told before a mirror runs.
        text.push_str(&t.metrics());
        for (name, kind, _) in TABLE {
            assert!(text.contains(&format!("# TYPE {name} {kind}")), "{name} {kind}: {text}");
        }
        assert_eq!(text.matches("# TYPE").count(), TABLE.len(), "{text}");
        assert!(t.state().partitions.iter().all(|p| p.done == 0));
        assert!(Told::state(&t).unwrap().contains("\"mirrored\": 0"), "{:?}", Told::state(&t));
        let docs = include_str!("../../../../docs/src/mirror-service.md");
        for (name, kind, what) in TABLE {
            let row = format!("| `{name}` | {kind} | {what} |");
            assert!(docs.contains(&row), "{row}");
        }
    }
}
