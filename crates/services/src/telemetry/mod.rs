//! What a recorder tells of itself: counts, where each partition stands, whether it lives and is ready.

mod metrics;
pub mod server;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lastcall_event::Timestamp;
use lastcall_ledger::system_now;
use serde::Serialize;

use crate::record::Key;
use metrics::Metrics;

pub use metrics::{Appended, TABLE};

/// A loop that does not tick for so long hangs.
const TICKS: Duration = Duration::from_secs(30);

/// Where one partition stands. Offsets are those of the next record.
#[derive(Clone, Debug, Serialize)]
pub struct Position {
    /// The source.
    pub source: String,
    /// The partition.
    pub partition: i32,
    /// Recorded in the ledger up to here.
    pub recorded: i64,
    /// Polled from the broker up to here; markers of transactions included.
    pub polled: i64,
    /// The topic's end as it was last seen.
    pub end: Option<i64>,
    /// Records that are not in the ledger yet, about: markers of transactions are among them.
    pub lag: i64,
    /// Held back, since the workers are behind.
    pub paused: bool,
    /// The time of the newest message that was polled.
    pub newest: Option<Timestamp>,
    /// When something was last appended by this process.
    pub appended: Option<Timestamp>,
    #[serde(skip)]
    taken: i64,
    #[serde(skip)]
    moved: Instant,
    #[serde(skip)]
    paused_at: Option<Instant>,
}

impl Position {
    fn told(mut self) -> Self {
        let open = self.taken > self.recorded;
        let from = if open { self.recorded } else { self.polled };
        self.lag = self.end.unwrap_or(from).max(self.taken).saturating_sub(from).max(0);
        self
    }
}

/// The last error.
#[derive(Clone, Debug, Serialize)]
pub struct LastError {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: String,
}

struct Inner {
    ticked: Instant,
    assigned: bool,
    draining: bool,
    partitions: BTreeMap<Key, Position>,
    last_error: Option<LastError>,
}

/// What this process tells of itself, kept by all of its threads: a batch or an append at a time, never a record.
pub struct Telemetry {
    metrics: Metrics,
    about: About,
    /// No append and no progress for so long, with records waiting, is not healthy.
    stuck: Duration,
    inner: Mutex<Inner>,
}

/// Who this is.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The binary.
    pub service: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The ledger's id.
    pub ledger: String,
    /// The consumer group.
    pub group: String,
    /// Since when.
    pub started: Timestamp,
}

/// The whole state, as `/state` shows it.
#[derive(Debug, Serialize)]
pub struct State {
    /// Who this is.
    #[serde(flatten)]
    pub about: About,
    /// Why it is not live; empty: it is.
    pub not_live: Vec<String>,
    /// Why it is not ready; empty: it is.
    pub not_ready: Vec<String>,
    /// The partitions that are its own.
    pub partitions: Vec<Position>,
    /// The last error.
    pub last_error: Option<LastError>,
}

impl Telemetry {
    /// With the age at which chunks close: records wait for that long without harm.
    pub fn new(about: About, chunk_age: Duration) -> Self {
        let inner = Inner {
            ticked: Instant::now(),
            assigned: false,
            draining: false,
            partitions: BTreeMap::new(),
            last_error: None,
        };
        let stuck = (chunk_age * 2).max(Duration::from_secs(600));
        Self { metrics: Metrics::default(), about, stuck, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, key: &Key, change: impl FnOnce(&mut Position)) {
        if let Some(position) = self.inner().partitions.get_mut(key) {
            change(position);
        }
    }

    /// The polling loop went round.
    pub fn tick(&self) {
        self.inner().ticked = Instant::now();
    }

    /// The group gave partitions, or took some.
    pub fn rebalanced(&self) {
        self.inner().assigned = true;
        self.metrics.rebalanced();
    }

    /// A partition is ours, and goes on here.
    pub fn assigned(&self, key: &Key, recorded: i64) {
        let position = Position {
            source: key.source.to_string(),
            partition: key.partition,
            recorded,
            polled: recorded,
            end: None,
            lag: 0,
            paused: false,
            newest: None,
            appended: None,
            taken: recorded,
            moved: Instant::now(),
            paused_at: None,
        };
        self.inner().partitions.insert(key.clone(), position);
    }

    /// It is not ours any more.
    pub fn revoked(&self, key: &Key) {
        self.paused(key, false);
        self.inner().partitions.remove(key);
    }

    /// Records were polled.
    pub fn polled(&self, key: &Key, records: u64, bytes: u64, next: i64, newest: Option<Timestamp>) {
        self.metrics.polled(key, records, bytes);
        self.with(key, |p| {
            p.polled = p.polled.max(next);
            p.taken = p.taken.max(next);
            p.newest = p.newest.max(newest);
            p.moved = Instant::now();
        });
    }

    /// Where the topic ends, and how far this process has read it, markers included.
    pub fn seen(&self, key: &Key, end: i64, position: i64) {
        self.with(key, |p| {
            p.end = Some(end);
            if position > p.polled {
                p.polled = position;
                p.moved = Instant::now();
            }
        });
    }

    /// An append was answered.
    pub fn appended(&self, key: &Key, done: &Appended<'_>) {
        self.metrics.appended(key, done);
        if let Some(next) = done.recorded {
            self.with(key, |p| {
                p.recorded = p.recorded.max(next);
                p.appended = Some(system_now());
                p.moved = Instant::now();
            });
        }
    }

    /// A partition is held back, or goes on.
    pub fn paused(&self, key: &Key, paused: bool) {
        let mut seconds = None;
        self.with(key, |p| {
            p.paused = paused;
            p.moved = Instant::now();
            match paused {
                true => p.paused_at = Some(Instant::now()),
                false => seconds = p.paused_at.take().map(|at| at.elapsed().as_secs_f64()),
            }
        });
        if let Some(seconds) = seconds {
            self.metrics.paused(key, seconds);
        }
    }

    /// Something went wrong that did not end the process, or that did. `code` is one of few.
    pub fn failed(&self, code: &str, what: &str) {
        self.metrics.failed(code);
        self.inner().last_error = Some(LastError { at: system_now(), what: what.to_owned() });
    }

    /// What is open is being closed: the end is near.
    pub fn draining(&self) {
        self.inner().draining = true;
    }

    /// Everything.
    pub fn state(&self) -> State {
        let inner = self.inner();
        let mut not_live = Vec::new();
        let still = inner.ticked.elapsed();
        if still > TICKS && !inner.draining {
            not_live.push(format!("the polling loop has not gone round for {} s", still.as_secs()));
        }
        let partitions: Vec<Position> = inner.partitions.values().cloned().map(Position::told).collect();
        for p in partitions.iter().filter(|p| p.lag > 0 && !p.paused && p.moved.elapsed() > self.stuck) {
            not_live.push(format!(
                "{}/{}: {} records wait, and nothing was read or appended for {} s",
                p.source,
                p.partition,
                p.lag,
                p.moved.elapsed().as_secs()
            ));
        }
        let mut not_ready = Vec::new();
        if !inner.assigned {
            not_ready.push("the group has not given any partition yet".to_owned());
        }
        if inner.draining {
            not_ready.push("what is open is being closed; it ends then".to_owned());
        }
        State {
            about: self.about.clone(),
            not_live,
            not_ready,
            partitions,
            last_error: inner.last_error.clone(),
        }
    }

    /// The metrics, in the text format of OpenMetrics.
    pub fn metrics(&self) -> String {
        let state = self.state();
        let now = system_now();
        let mut text = String::new();
        if let Err(error) = self.metrics.encode(&mut text, &state.partitions, now) {
            let _ = writeln!(text, "# {error}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use lastcall_contract::Digest;
    use lastcall_event::Day;
    use lastcall_ledger::entry::{Balance, Build, Chunk, ControlRef, PartitionBody};
    use lastcall_ledger::position::{NextOffset, Range};
    use lastcall_ledger::tally::{Counts, Tally};

    use super::*;

    fn telemetry() -> Telemetry {
        let about = About {
            service: "lastcall-record",
            version: "0",
            ledger: "l".to_owned(),
            group: "g".to_owned(),
            started: Timestamp(0),
        };
        let mut telemetry = Telemetry::new(about, Duration::ZERO);
        telemetry.stuck = Duration::ZERO;
        telemetry
    }

    fn key() -> Key {
        Key { source: "calls".into(), partition: 3 }
    }

    #[test]
    fn ready_is_an_assignment_and_no_drain() {
        let t = telemetry();
        assert_eq!(t.state().not_ready.len(), 1);
        t.rebalanced();
        assert!(t.state().not_ready.is_empty() && t.state().not_live.is_empty());
        t.draining();
        assert_eq!(t.state().not_ready.len(), 1);
    }

    #[test]
    fn records_that_wait_are_not_healthy_unless_they_are_held_back() {
        let t = telemetry();
        t.assigned(&key(), 10);
        t.seen(&key(), 10, 10);
        assert!(t.state().not_live.is_empty(), "nothing waits");
        t.polled(&key(), 5, 500, 15, Some(Timestamp(1)));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(t.state().partitions[0].lag, 5);
        assert_eq!(t.state().not_live.len(), 1);
        t.paused(&key(), true);
        std::thread::sleep(Duration::from_millis(2));
        assert!(t.state().not_live.is_empty(), "backpressure is healthy");
        t.paused(&key(), false);
        t.appended(&key(), &Appended { recorded: Some(15), ..Appended::default() });
        // Behind the last record stands a transaction's marker: nothing waits.
        t.seen(&key(), 16, 16);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(t.state().partitions[0].lag, 0);
        assert!(t.state().not_live.is_empty());
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
