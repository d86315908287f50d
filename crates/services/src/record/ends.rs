//! Looks at the topics from outside every few seconds: where each partition really ends, and how many there are; and at the
//! control chain.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lastcall_event::Timestamp;
use lastcall_ledger::system_now;

use super::Key;
use super::follower::Follower;
use crate::kafka::topic::Observer;

/// Until the first partitions are there.
const SOON: Duration = Duration::from_millis(200);

/// What was seen.
pub enum Seen {
    /// A partition ended here at a moment: whoever has read that far has read everything up to the moment.
    End {
        /// The partition.
        key: Key,
        /// One past its last record, open transactions included.
        high: i64,
        /// A moment before the question was asked.
        at: Timestamp,
    },
    /// A source has this many partitions.
    Partitions {
        /// The source.
        source: Arc<str>,
        /// Its partitions.
        count: i32,
    },
}

/// Looks until nobody listens any more. `stop` ends the waiting in between. What no broker answers is asked again.
pub fn run(
    observer: &Observer,
    follower: &Follower,
    owned: &Mutex<Vec<Key>>,
    every: Duration,
    seen: &Sender<Seen>,
    stop: &Receiver<()>,
) {
    let mut counts: BTreeMap<Arc<str>, i32> = BTreeMap::new();
    loop {
        // An idle partition opens its next chunk under what the control chain says then; what cannot be read is said where it is
        // needed.
        let _ = follower.refresh();
        let keys = owned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let idle = keys.is_empty();
        for key in keys {
            // Each question may wait for a broker that is away.
            if !matches!(stop.try_recv(), Err(TryRecvError::Empty)) {
                return;
            }
            if !counts.contains_key(&key.source)
                && let Ok(Some(count)) = observer.partitions(&key.source)
            {
                counts.insert(key.source.clone(), count);
                if seen.send(Seen::Partitions { source: key.source.clone(), count }).is_err() {
                    return;
                }
            }
            let at = system_now();
            match observer.bounds(&key.source, key.partition) {
                Ok(bounds) if seen.send(Seen::End { key, high: bounds.high, at }).is_err() => return,
                Ok(_) => {}
                // The others would wait as long: later.
                Err(_) => break,
            }
        }
        counts.clear();
        match stop.recv_timeout(if idle { every.min(SOON) } else { every }) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}
