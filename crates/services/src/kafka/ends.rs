//! Looks at topics from outside every few seconds: where each partition really ends, and how many there are.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lastcall_event::Timestamp;
use lastcall_ledger::system_now;

use super::Key;
use super::topic::Observer;

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
    /// A topic has this many partitions.
    Partitions {
        /// The topic.
        source: Arc<str>,
        /// Its partitions.
        count: i32,
    },
}

/// Who looks, and at what.
pub struct Ends<'a> {
    /// Asks.
    pub observer: &'a Observer,
    /// The partitions whose ends are asked for.
    pub owned: &'a Mutex<Vec<Key>>,
    /// Topics whose partitions are counted beside those of `owned`.
    pub beside: &'a [Arc<str>],
    /// Between two looks.
    pub every: Duration,
}

impl Ends<'_> {
    /// Looks until nobody listens any more; `first` is done before each look. `stop` ends the waiting in between. What no
    /// broker answers is asked again.
    pub fn run(&self, mut first: impl FnMut(), seen: &Sender<Seen>, stop: &Receiver<()>) {
        loop {
            first();
            let keys = self.owned.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let idle = keys.is_empty();
            if self.look(keys, seen, stop).is_none() {
                return;
            }
            match stop.recv_timeout(if idle { self.every.min(SOON) } else { self.every }) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// `None`: nobody listens any more.
    fn look(&self, keys: Vec<Key>, seen: &Sender<Seen>, stop: &Receiver<()>) -> Option<()> {
        let mut counted: BTreeSet<Arc<str>> = BTreeSet::new();
        let topics =
            keys.iter().map(|key| &key.source).chain(self.beside.iter().filter(|_| !keys.is_empty()));
        for topic in topics {
            // Each question may wait for a broker that is away.
            if !matches!(stop.try_recv(), Err(TryRecvError::Empty)) {
                return None;
            }
            if counted.contains(topic) {
                continue;
            }
            match self.observer.partitions(topic) {
                Ok(Some(count)) => {
                    counted.insert(topic.clone());
                    seen.send(Seen::Partitions { source: topic.clone(), count }).ok()?;
                }
                Ok(None) => {}
                // The others would wait as long: later.
                Err(_) => return Some(()),
            }
        }
        for key in keys {
            if !matches!(stop.try_recv(), Err(TryRecvError::Empty)) {
                return None;
            }
            let at = system_now();
            match self.observer.bounds(&key.source, key.partition) {
                Ok(bounds) => seen.send(Seen::End { key, high: bounds.high, at }).ok()?,
                Err(_) => break,
            }
        }
        Some(())
    }
}
