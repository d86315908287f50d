//! How long to leave something alone that did not start, or ended.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Doubles from 100 ms to 30 s; what went well begins anew. The first failure costs no wait.
#[derive(Default)]
pub(super) struct Backoff(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may be started now.
    pub fn is_over(&self) -> bool {
        self.state().until.is_none_or(|until| Instant::now() >= until)
    }

    pub fn failed(&self) {
        let mut state = self.state();
        let doublings = state.failures.saturating_sub(1).min(16);
        let wait = if state.failures == 0 { Duration::ZERO } else { FIRST * (1 << doublings) };
        state.failures = state.failures.saturating_add(1);
        state.until = Some(Instant::now() + wait.min(LONGEST));
    }

    pub fn went_well(&self) {
        *self.state() = State::default();
    }
}
