//! The partitions that are this process's: given and taken in the callbacks of librdkafka, which run on the polling thread.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastcall_event::Timestamp;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use tokio::runtime::Handle;

use super::lane::{Lane, Message, Shared, ToLane};
use super::start::{Start, Starter};
use crate::Stop;
use crate::kafka::Key;
use crate::kafka::member::{keys_of, list};

/// Tails that are looked for at once on an assignment.
const TOGETHER: usize = 16;

/// One partition that is ours.
pub struct Owned {
    /// Its work.
    pub lane: Lane,
    /// It is held back.
    pub paused: bool,
    /// Where the next record is expected, as far as was polled.
    pub position: i64,
    /// librdkafka says that nothing more is there to be read.
    pub at_end: bool,
    /// Ends that were seen, and when: whoever has read that far has read everything up to then.
    pub ends: VecDeque<(i64, Timestamp)>,
    /// It was read to an end that was seen after it was assigned.
    pub complete: bool,
    /// Polled and not told yet: records, bytes, the newest time.
    pub polled: (u64, u64, Option<Timestamp>),
}

/// What changes with assignments.
#[derive(Default)]
pub struct Inner {
    /// The partitions that are ours.
    pub owned: BTreeMap<Key, Owned>,
    /// The number of the last assignment of a partition.
    pub generation: u64,
    /// What went wrong in a callback.
    pub failed: Option<Stop>,
    /// Assignments and revocations.
    pub rebalances: u64,
    /// The end is near: nothing is taken any more.
    pub closing: bool,
}

/// What the callbacks of librdkafka need; they run on the polling thread.
pub struct Context {
    starter: Starter,
    /// What all lanes share.
    pub shared: Arc<Shared>,
    runtime: Handle,
    keys: Arc<Mutex<Vec<Key>>>,
    /// What is said to people.
    pub say: fn(&str),
    inner: Mutex<Inner>,
}

impl ClientContext for Context {
    fn error(&self, _: KafkaError, _: &str) {
        // Comes out of the poll as well, and is said there.
    }
}

impl ConsumerContext for Context {
    fn rebalance(&self, consumer: &BaseConsumer<Self>, err: RDKafkaRespErr, tpl: &mut TopicPartitionList) {
        let done = match err {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assign(consumer, &keys_of(tpl)),
            _ => self.revoke(consumer, &keys_of(tpl)),
        };
        self.shared.telemetry.rebalanced();
        let mut inner = self.inner();
        inner.rebalances += 1;
        if let Err(stop) = done {
            inner.failed.get_or_insert(stop);
        }
    }
}

impl Context {
    /// `keys` is kept up to date with what is owned.
    pub fn new(
        starter: Starter,
        shared: Arc<Shared>,
        runtime: Handle,
        keys: Arc<Mutex<Vec<Key>>>,
        say: fn(&str),
    ) -> Self {
        Self { starter, shared, runtime, keys, say, inner: Mutex::default() }
    }

    /// What changes with assignments.
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds where the output ends, and has librdkafka fetch from there.
    ///
    /// # Errors
    /// A partition cannot be begun.
    pub fn assign(&self, consumer: &BaseConsumer<Self>, keys: &[Key]) -> Result<(), Stop> {
        if self.inner().closing {
            return Ok(());
        }
        let mut starts: Vec<(Key, Start)> = Vec::with_capacity(keys.len());
        for together in keys.chunks(TOGETHER) {
            let found = std::thread::scope(|scope| {
                let threads: Vec<_> = together
                    .iter()
                    .map(|key| (key.clone(), scope.spawn(move || self.starter.start(key.partition))))
                    .collect();
                threads
                    .into_iter()
                    .map(|(key, thread)| {
                        Ok((key, thread.join().map_err(|_| Stop::Thread("an assignment"))??))
                    })
                    .collect::<Result<Vec<_>, Stop>>()
            })?;
            starts.extend(found);
        }
        let mut tpl = TopicPartitionList::new();
        for (key, start) in &starts {
            tpl.add_partition_offset(&key.source, key.partition, Offset::Offset(start.mark.resume))?;
        }
        consumer
            .incremental_assign(&tpl)
            .map_err(|error| Stop::Kafka { what: "assigning partitions".to_owned(), error })?;
        let mut inner = self.inner();
        for (key, start) in starts {
            if start.lost > 0 {
                (self.say)(&format!(
                    "{key}: {} records are gone that were not mirrored (retention); mirroring goes on at offset {}, and the \
                     record will say what is missing",
                    start.lost, start.mark.resume
                ));
                self.shared.telemetry.own().lost_records.inc_by(start.lost.unsigned_abs());
            }
            inner.generation += 1;
            let generation = inner.generation;
            self.shared.telemetry.assigned(&key, start.mark.resume);
            let lane = Lane::start(&self.shared, &self.runtime, key.clone(), generation, &start);
            let owned = Owned {
                lane,
                paused: false,
                position: start.mark.resume,
                at_end: false,
                ends: VecDeque::new(),
                complete: false,
                polled: (0, 0, None),
            };
            inner.owned.insert(key, owned);
        }
        self.note(&inner);
        // Looking for tails may take longer than a session; the client's own thread has kept it alive.
        self.shared.pulse.busy();
        Ok(())
    }

    /// Drops what is under way of partitions, and gives them back.
    ///
    /// # Errors
    /// librdkafka does not take them.
    pub fn revoke(&self, consumer: &BaseConsumer<Self>, keys: &[Key]) -> Result<(), Stop> {
        let mut inner = self.inner();
        for key in keys {
            self.shared.telemetry.revoked(key);
            inner.owned.remove(key);
        }
        self.note(&inner);
        drop(inner);
        consumer
            .incremental_unassign(&list(keys))
            .map_err(|error| Stop::Kafka { what: "giving partitions back".to_owned(), error })
    }

    fn note(&self, inner: &Inner) {
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = inner.owned.keys().cloned().collect();
    }
}

impl Owned {
    /// Hands a message over.
    pub fn message(&mut self, message: Message) {
        let next = message.offset.saturating_add(1);
        self.at_end = false;
        self.position = next;
        self.polled.0 += 1;
        self.polled.1 += message.value.len() as u64;
        self.polled.2 = self.polled.2.max(message.time);
        self.lane.queued.fetch_add(message.size(), Ordering::Relaxed);
        // A lane that ended has said why.
        let _ = self.lane.inbox.send(ToLane::Message(message));
        self.reached();
    }

    /// Everything up to the ends that lie behind the position was handed over.
    pub fn reached(&mut self) {
        let mut at = None;
        while let Some((_, seen)) = self.ends.front().filter(|(high, _)| *high <= self.position) {
            at = Some(*seen);
            self.ends.pop_front();
        }
        if let Some(at) = at {
            self.complete = true;
            let _ = self.lane.inbox.send(ToLane::Barrier { next: self.position, at });
        }
    }
}
