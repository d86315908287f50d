//! What is held in memory: a limit on calls and bytes for everything between a request's first byte and the broker's answer,
//! and the counts of what had no room.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Microseconds.
pub const DAY: i64 = 86_400_000_000;
/// Microseconds.
pub const MILLISECOND: i64 = 1_000;
/// More tools than this in the counts are counted without their name.
const TOOLS: usize = 1_000;
/// What a call costs beside its bytes.
const OVERHEAD: usize = 2_048;

/// Calls that were lost: how many, and the times of the first and the last in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    pub count: u64,
    pub first: i64,
    pub last: i64,
}

/// By tool (if it is known) and UTC day: an interval over midnight would count on both days.
pub type Losses = BTreeMap<(Option<String>, i64), Lost>;

/// Limits, and what was lost. Nothing here waits.
pub struct Held {
    max_records: usize,
    max_bytes: usize,
    records: AtomicUsize,
    bytes: AtomicUsize,
    losses: Mutex<Losses>,
}

/// A call's part of the limits, given back when it is dropped.
pub struct Room {
    held: Arc<Held>,
    bytes: usize,
}

fn add(counter: &AtomicUsize, more: usize, limit: usize) -> bool {
    let sum = |now: usize| now.checked_add(more).filter(|sum| *sum <= limit);
    counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).is_ok()
}

impl Held {
    /// Nothing is held.
    pub fn new(max_records: usize, max_bytes: usize) -> Self {
        let (records, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { max_records, max_bytes, records, bytes, losses: Mutex::default() }
    }

    /// Room for one more call; none where a limit is reached.
    pub fn room(self: &Arc<Self>) -> Option<Room> {
        if !add(&self.records, 1, self.max_records) {
            return None;
        }
        let mut room = Room { held: self.clone(), bytes: 0 };
        room.grow(OVERHEAD).then_some(room)
    }

    /// Counts a call that will not be written.
    pub fn lose(&self, tool: Option<&str>, at: i64) {
        self.give_back([(
            (tool.map(str::to_owned), at.div_euclid(DAY)),
            Lost { count: 1, first: at, last: at },
        )]);
    }

    /// Takes the counts that were not reported yet.
    pub fn losses(&self) -> Losses {
        std::mem::take(&mut self.losses.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether counts wait to be reported.
    pub fn has_losses(&self) -> bool {
        !self.losses.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Adds counts.
    pub fn give_back(&self, more: impl IntoIterator<Item = ((Option<String>, i64), Lost)>) {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        for ((tool, day), lost) in more {
            let tool = tool.filter(|t| losses.len() < TOOLS || losses.contains_key(&(Some(t.clone()), day)));
            let sum = losses.entry((tool, day)).or_insert(Lost { count: 0, ..lost });
            sum.count += lost.count;
            sum.first = sum.first.min(lost.first);
            sum.last = sum.last.max(lost.last);
        }
    }

    /// Calls that are held.
    pub fn records(&self) -> usize {
        self.records.load(Ordering::Acquire)
    }
}

impl Room {
    /// More bytes; `false` where the limit is reached.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let grown = add(&self.held.bytes, bytes, self.held.max_bytes);
        if grown {
            self.bytes += bytes;
        }
        grown
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.held.records.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Now, in microseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_what_is_dropped_gives_it_back() {
        let held = Arc::new(Held::new(2, 3 * OVERHEAD));
        let (mut first, second) = (held.room().unwrap(), held.room().unwrap());
        assert!(held.room().is_none(), "two calls");
        assert!(first.grow(OVERHEAD) && !first.grow(1), "so many bytes");
        drop(second);
        assert!(first.grow(OVERHEAD) && held.room().is_none());
        drop(first);
        assert_eq!((held.records(), held.bytes.load(Ordering::Acquire)), (0, 0));
        assert!(held.room().is_some());
    }

    #[test]
    fn losses_are_counted_by_tool_and_day_and_the_names_are_bounded() {
        let held = Held::new(1, 1);
        for at in [DAY - 1, DAY, DAY + 5] {
            held.lose(Some("t"), at);
        }
        let counts: Vec<_> = held.losses().into_values().map(|l| (l.count, l.first, l.last)).collect();
        assert_eq!(counts, [(1, DAY - 1, DAY - 1), (2, DAY, DAY + 5)]);
        for number in 0..3 * TOOLS {
            held.lose(Some(&number.to_string()), 0);
        }
        let losses = held.losses();
        assert!(losses.len() <= TOOLS + 1);
        assert_eq!(losses.values().map(|l| l.count).sum::<u64>(), 3 * TOOLS as u64);
        assert!(!held.has_losses());
    }
}
