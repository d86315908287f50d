//! What a service tells of itself: counts, where each partition stands, whether it lives and is ready.

pub mod common;
pub mod server;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lastcall_event::Timestamp;
use lastcall_ledger::system_now;
use serde::Serialize;

use crate::kafka::Key;
use common::{Common, Named};

/// A loop that does not tick for so long hangs.
const TICKS: Duration = Duration::from_secs(30);

/// Where one partition stands. Offsets are those of the next record.
#[derive(Clone, Debug, Serialize)]
pub struct Position {
    /// The source.
    pub source: String,
    /// The partition.
    pub partition: i32,
    /// Done up to here: recorded in the ledger, mirrored in the output. `/state` says which.
    pub done: i64,
    /// Polled from the broker up to here; markers of transactions included.
    pub polled: i64,
    /// The topic's end as it was last seen.
    pub end: Option<i64>,
    /// Records that are not done yet, about: markers of transactions are among them.
    pub lag: i64,
    /// Held back, since the workers are behind.
    pub paused: bool,
    /// The time of the newest message that was polled.
    pub newest: Option<Timestamp>,
    /// When something was last appended by this process.
    pub appended: Option<Timestamp>,
    /// Of a mirror: everything up to this moment is mirrored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<Timestamp>,
    #[serde(skip)]
    taken: i64,
    #[serde(skip)]
    moved: Instant,
    #[serde(skip)]
    paused_at: Option<Instant>,
}

impl Position {
    fn told(mut self) -> Self {
        let open = self.taken > self.done;
        let from = if open { self.done } else { self.polled };
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

/// The counters of one service.
pub trait Metrics: Default + Send + Sync + 'static {
    /// What each name begins with.
    const PREFIX: &'static str;
    /// Every metric: name, type, meaning. The guide's table is this one.
    const TABLE: &'static [(&'static str, &'static str, &'static str)];
    /// What `/state` calls the position up to which a partition is done.
    const DONE: &'static str;
    /// Those that every service has.
    fn common(&self) -> &Common;
    /// Adds its own.
    fn register(&self, registry: &mut Named<'_>, positions: &[Position]);
}

/// What the server asks of a service.
pub trait Told: Send + Sync + 'static {
    /// Why it is not live; empty: it is.
    fn not_live(&self) -> Vec<String>;
    /// Why it is not ready; empty: it is.
    fn not_ready(&self) -> Vec<String>;
    /// The text of OpenMetrics.
    fn metrics(&self) -> String;
    /// The whole state, as JSON.
    fn state(&self) -> Result<String, serde_json::Error>;
}

/// What this process tells of itself, kept by all of its threads: a batch or an append at a time, never a record.
pub struct Telemetry<M> {
    metrics: M,
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
    /// The ledger's id, of a service that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// The topics that a mirror reads and writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<(String, String)>,
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

impl<M: Metrics> Telemetry<M> {
    /// With the time for which records wait without harm: of a recorder the age at which chunks close.
    pub fn new(about: About, patience: Duration) -> Self {
        let inner = Inner {
            ticked: Instant::now(),
            assigned: false,
            draining: false,
            partitions: BTreeMap::new(),
            last_error: None,
        };
        let stuck = (patience * 2).max(Duration::from_secs(600));
        Self { metrics: M::default(), about, stuck, inner: Mutex::new(inner) }
    }

    /// The service's own counters.
    pub fn own(&self) -> &M {
        &self.metrics
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
        self.metrics.common().rebalanced();
    }

    /// A partition is ours, and goes on here.
    pub fn assigned(&self, key: &Key, done: i64) {
        let position = Position {
            source: key.source.to_string(),
            partition: key.partition,
            done,
            polled: done,
            end: None,
            lag: 0,
            paused: false,
            newest: None,
            appended: None,
            through: None,
            taken: done,
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
        self.metrics.common().polled(key, records, bytes);
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

    /// Everything before `next` is done.
    pub fn done(&self, key: &Key, next: i64) {
        self.with(key, |p| {
            p.done = p.done.max(next);
            p.appended = Some(system_now());
            p.moved = Instant::now();
        });
    }

    /// Everything up to a moment is mirrored.
    pub fn through(&self, key: &Key, at: Timestamp) {
        self.with(key, |p| p.through = p.through.max(Some(at)));
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
            self.metrics.common().paused(key, seconds);
        }
    }

    /// Something went wrong that did not end the process, or that did. `code` is one of few.
    pub fn failed(&self, code: &str, what: &str) {
        self.metrics.common().failed(code);
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
}

impl<M: Metrics> Told for Telemetry<M> {
    fn not_live(&self) -> Vec<String> {
        self.state().not_live
    }

    fn not_ready(&self) -> Vec<String> {
        self.state().not_ready
    }

    fn metrics(&self) -> String {
        let partitions = self.state().partitions;
        let mut text = String::new();
        if let Err(error) = common::encode(&self.metrics, &mut text, &partitions, system_now()) {
            let _ = writeln!(text, "# {error}");
        }
        text
    }

    fn state(&self) -> Result<String, serde_json::Error> {
        let mut state = serde_json::to_value(self.state())?;
        let partitions = state.get_mut("partitions").and_then(serde_json::Value::as_array_mut);
        for position in partitions.into_iter().flatten().filter_map(serde_json::Value::as_object_mut) {
            if let Some(done) = position.remove("done") {
                position.insert(M::DONE.to_owned(), done);
            }
        }
        serde_json::to_string_pretty(&state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::metrics::Metrics;

    fn telemetry() -> Telemetry<Metrics> {
        let about = About {
            service: "lastcall-record",
            version: "0",
            ledger: Some("l".to_owned()),
            topics: None,
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
        t.done(&key(), 15);
        // Behind the last record stands a transaction's marker: nothing waits.
        t.seen(&key(), 16, 16);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(t.state().partitions[0].lag, 0);
        assert!(t.state().not_live.is_empty());
    }
}
