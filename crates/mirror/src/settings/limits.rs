//! Switches, rates and limits: what may change while calls run.

use std::time::Duration;

/// What holds for the calls of one tool. [`Limits::default`] holds where nothing is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The switch. Off: rows say `not_run`.
    pub on: bool,
    /// Calls at once.
    pub concurrency: usize,
    /// Calls a second; `None`: no limit.
    pub rate: Option<f64>,
    /// For a call's whole exchange with one candidate, retries included.
    pub timeout: Duration,
    /// The share of sessions that is replayed, 0 to 1.
    pub sample: f64,
    /// How old, by its own time, a call may be when it is sent; `None`: any age.
    pub max_age: Option<Duration>,
    /// How often an exchange that failed is tried again. Counts only where the tool is declared idempotent.
    pub retries: u32,
    /// When a candidate that fails is left alone.
    pub breaker: Breaker,
    /// The longest answer, in bytes.
    pub max_answer: usize,
}

/// After this many failures in a row a candidate is left alone for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row.
    pub failures: u32,
    /// How long. Then one call tries again.
    pub pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            on: true,
            concurrency: 16,
            rate: None,
            timeout: Duration::from_secs(10),
            sample: 1.0,
            max_age: None,
            retries: 0,
            breaker: Breaker { failures: 20, pause: Duration::from_secs(30) },
            max_answer: 1 << 20,
        }
    }
}

/// What one table says of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stated {
    pub on: Option<bool>,
    pub concurrency: Option<usize>,
    pub rate: Option<f64>,
    pub timeout: Option<Duration>,
    pub sample: Option<f64>,
    pub max_age: Option<Duration>,
    pub retries: Option<u32>,
    pub failures: Option<u32>,
    pub pause: Option<Duration>,
    pub max_answer: Option<usize>,
}

impl Stated {
    /// What is stated takes the place of what was.
    pub fn over(&self, limits: &mut Limits) {
        fn put<T: Clone>(from: &Option<T>, to: &mut T) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        put(&self.on, &mut limits.on);
        put(&self.concurrency, &mut limits.concurrency);
        limits.rate = self.rate.or(limits.rate);
        put(&self.timeout, &mut limits.timeout);
        put(&self.sample, &mut limits.sample);
        limits.max_age = self.max_age.or(limits.max_age);
        put(&self.retries, &mut limits.retries);
        put(&self.failures, &mut limits.breaker.failures);
        put(&self.pause, &mut limits.breaker.pause);
        put(&self.max_answer, &mut limits.max_answer);
    }
}
