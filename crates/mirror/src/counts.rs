//! What is counted: per candidate, with labels that the settings and this build bound.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lastcall_event::Status;

use crate::answer::Failure;

/// Classes of failures as counts name them.
pub const CLASSES: [&str; 15] = [
    "connection",
    "not_an_answer",
    "answer_cut",
    "answer_too_large",
    "http_5xx",
    "http_4xx",
    "http_3xx",
    "http_other",
    "rate_limited",
    "timed_out",
    "dry_run_not_offered",
    "circuit_open",
    "unknown_tool",
    "rpc_error",
    "process",
];

/// Statuses that an answer may have.
const STATUSES: [Status; 13] = [
    Status::Ok,
    Status::InvalidArguments,
    Status::BusinessError,
    Status::PermissionDenied,
    Status::RateLimited,
    Status::Timeout,
    Status::PlatformError,
    Status::Unknown,
    Status::TimedOut,
    Status::Shed,
    Status::Unavailable,
    Status::SampledOut,
    Status::NotRun,
];

/// What was counted for one candidate since the start.
#[derive(Clone, Debug)]
pub struct CandidateCounts {
    /// The tool.
    pub tool: String,
    /// The candidate's contract; of a rerun without one `current`.
    pub contract: String,
    /// It is the current version, run again.
    pub rerun: bool,
    /// Answers by status; statuses without one are left out.
    pub by_status: Vec<(Status, u64)>,
    /// Failures by class, one of [`CLASSES`]; classes without one are left out.
    pub by_class: Vec<(&'static str, u64)>,
    /// Exchanges that were begun, further tries included.
    pub exchanges: u64,
    /// Exchanges that were tried again.
    pub retries: u64,
    /// Seconds that calls took, from sending to the end of the answer.
    pub seconds: f64,
    /// Calls in `seconds`.
    pub timed: u64,
    /// Its circuit breaker is open.
    pub open: bool,
    /// Calls of its tool that wait for their turn.
    pub waiting: usize,
    /// The tool's switch.
    pub on: bool,
}

#[derive(Default)]
pub(crate) struct Tally {
    statuses: [AtomicU64; STATUSES.len()],
    classes: [AtomicU64; CLASSES.len()],
    exchanges: AtomicU64,
    retries: AtomicU64,
    nanos: AtomicU64,
    timed: AtomicU64,
}

fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl Tally {
    pub fn status(&self, status: Status) {
        if let Some(counter) = STATUSES.iter().position(|s| *s == status).and_then(|n| self.statuses.get(n)) {
            add(counter, 1);
        }
    }

    pub fn failure(&self, failure: Failure) {
        let place = CLASSES.iter().position(|class| *class == failure.label());
        if let Some(counter) = place.and_then(|n| self.classes.get(n)) {
            add(counter, 1);
        }
    }

    pub fn exchange(&self, again: bool) {
        add(&self.exchanges, 1);
        add(&self.retries, u64::from(again));
    }

    pub fn took(&self, time: Duration) {
        add(&self.nanos, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        add(&self.timed, 1);
    }

    pub fn counts(&self, tool: &str, contract: &str, rerun: bool) -> CandidateCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let by_status = STATUSES.iter().zip(&self.statuses).map(|(s, n)| (*s, get(n)));
        let by_class = CLASSES.iter().zip(&self.classes).map(|(c, n)| (*c, get(n)));
        CandidateCounts {
            tool: tool.to_owned(),
            contract: contract.to_owned(),
            rerun,
            by_status: by_status.filter(|(_, n)| *n > 0).collect(),
            by_class: by_class.filter(|(_, n)| *n > 0).collect(),
            exchanges: get(&self.exchanges),
            retries: get(&self.retries),
            seconds: get(&self.nanos) as f64 / 1e9,
            timed: get(&self.timed),
            open: false,
            waiting: 0,
            on: true,
        }
    }
}
