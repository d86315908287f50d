//! Whether this process still speaks to its group. One that stood still for longer than its session is no member any
//! more, whatever it believes: what it held open is not written, and its partitions are looked at again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the last poll, and the first assignment that may still be written for.
pub struct Pulse {
    begun: Instant,
    last: AtomicU64,
    fence: AtomicU64,
    limit: Duration,
}

impl Pulse {
    /// With the time after which a member that does not poll is taken for dead.
    pub fn new(limit: Duration) -> Self {
        Self { begun: Instant::now(), last: AtomicU64::new(0), fence: AtomicU64::new(0), limit }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A poll is about to begin. If the process stood still for too long, for how long; nothing of the assignments before
    /// `next` is written any more then.
    pub fn beat(&self, next: u64) -> Option<Duration> {
        let now = self.now();
        let still = Duration::from_millis(now.saturating_sub(self.last.load(Ordering::SeqCst)));
        let stalled = still > self.limit;
        if stalled {
            self.fence.store(next, Ordering::SeqCst);
        }
        self.last.store(now, Ordering::SeqCst);
        stalled.then_some(still)
    }

    /// The polling thread was busy with an assignment: that is no standstill, however long it took.
    pub fn busy(&self) {
        self.last.store(self.now(), Ordering::SeqCst);
    }

    /// Whether something of this assignment may be written now.
    pub fn allows(&self, generation: u64) -> bool {
        let still = self.now().saturating_sub(self.last.load(Ordering::SeqCst));
        Duration::from_millis(still) <= self.limit && generation >= self.fence.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_before_a_standstill_is_not_written_after_it() {
        let pulse = Pulse::new(Duration::from_millis(40));
        assert!(pulse.beat(1).is_none() && pulse.allows(0));
        std::thread::sleep(Duration::from_millis(80));
        assert!(!pulse.allows(0), "before the next poll nobody knows");
        pulse.busy();
        assert!(pulse.beat(5).is_none() && pulse.allows(0), "an assignment took long");
        std::thread::sleep(Duration::from_millis(80));
        assert!(pulse.beat(7).is_some());
        assert!(!pulse.allows(6) && pulse.allows(7));
    }
}
