//! Leaving a candidate alone that fails.

use std::sync::Mutex;

use tokio::time::Instant;

use crate::settings::Breaker as Bounds;

/// Counts failures in a row.
#[derive(Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    /// Open until then; then one call a pause goes through.
    until: Option<Instant>,
}

impl Breaker {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether a call may go through now.
    pub fn admits(&self, bounds: Bounds) -> bool {
        let mut state = self.state();
        let Some(until) = state.until else { return true };
        let now = Instant::now();
        if now < until {
            return false;
        }
        // this call tries; the next may in a pause, should this one never be heard of
        state.until = Some(now + bounds.pause);
        true
    }

    /// What came of a call that went through.
    pub fn told(&self, bounds: Bounds, good: bool) {
        let mut state = self.state();
        if good {
            *state = State::default();
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= bounds.failures {
            state.until = Some(Instant::now() + bounds.pause);
        }
    }

    /// Whether calls are kept from it.
    pub fn is_open(&self) -> bool {
        self.state().until.is_some()
    }
}
