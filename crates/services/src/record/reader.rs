//! The one thread that polls the broker. It copies records into batches for the workers and never works on them; it
//! assigns partitions at their chains' tails, and holds them back while a worker is behind.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lastcall_event::Timestamp;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use super::Telemetry;
use super::assign::{Assigner, Start};
use super::service::Summary;
use super::worker::{Batch, FromWorker, Place, ToWorker};
use super::{Key, Stop};
use crate::kafka::ends::Seen;
use crate::kafka::member::{Outer, Trouble, keys_of, list};
use crate::kafka::pulse::Pulse;
use crate::kafka::topic::patiently;

/// Bytes in a worker's inbox at which its partitions are paused, and at which they go on.
const HIGH: usize = 16 << 20;
const LOW: usize = 4 << 20;
/// A batch is handed over at this size.
const BATCH_BYTES: usize = 128 << 10;
const BATCH_RECORDS: usize = 256;
/// Chains that are read at once on an assignment.
const TOGETHER: usize = 16;
const POLL: Duration = Duration::from_millis(100);
/// How long closing may take, with the appends that it waits for.
const DRAIN: Duration = Duration::from_secs(25);
const HINTS: Duration = Duration::from_secs(5);
/// Between two words on what a run to the end waits for.
const WAIT: Duration = Duration::from_secs(10);
const SAY: Duration = Duration::from_secs(60);

/// A worker as the reader sees it.
pub struct Desk {
    /// Its inbox.
    pub inbox: Sender<ToWorker>,
    /// Bytes in it.
    pub queued: Arc<AtomicUsize>,
}

struct Owned {
    generation: u64,
    desk: usize,
    batch: Batch,
    paused: bool,
    /// Where the next record is expected, as far as was polled.
    position: i64,
    at_end: bool,
    mark: Option<(i64, Timestamp)>,
    /// It was read to an end that was seen after it was assigned.
    complete: bool,
    /// Its messages go through a map, which may read their keys and headers.
    mapped: bool,
}

#[derive(Default)]
struct Inner {
    owned: BTreeMap<Key, Owned>,
    generation: u64,
    failed: Option<Stop>,
    rebalances: u64,
}

/// What the callbacks of librdkafka need; they run on the polling thread.
pub struct Context {
    assigner: Assigner,
    desks: Vec<Desk>,
    keys: Arc<Mutex<Vec<Key>>>,
    telemetry: Arc<Telemetry>,
    inner: Mutex<Inner>,
}

impl Drop for Context {
    fn drop(&mut self) {
        for desk in 0..self.desks.len() {
            self.tell(desk, ToWorker::End);
        }
    }
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
        self.telemetry.rebalanced();
        let mut inner = self.inner();
        inner.rebalances += 1;
        if let Err(stop) = done {
            inner.failed.get_or_insert(stop);
        }
    }
}

impl Context {
    /// With the workers' inboxes; `keys` is kept up to date with what is owned.
    pub fn new(
        assigner: Assigner,
        desks: Vec<Desk>,
        keys: Arc<Mutex<Vec<Key>>>,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self { assigner, desks, keys, telemetry, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the chains' tails and has librdkafka fetch from there.
    fn assign(&self, consumer: &BaseConsumer<Self>, keys: &[Key]) -> Result<(), Stop> {
        let mut counts: BTreeMap<Arc<str>, i32> = BTreeMap::new();
        for key in keys {
            if !counts.contains_key(&key.source) {
                let count =
                    patiently(|| self.assigner.observer.partitions(&key.source)).map_err(|error| {
                        Stop::Kafka { what: format!("the partitions of topic {}", key.source), error }
                    })?;
                counts.insert(key.source.clone(), count.unwrap_or(1));
            }
        }
        let mut starts: Vec<(Key, Start)> = Vec::with_capacity(keys.len());
        for together in keys.chunks(TOGETHER) {
            let read = std::thread::scope(|scope| {
                let one = |key: &Key| {
                    let count = counts.get(&key.source).copied().unwrap_or(1);
                    self.start(key, count)
                };
                let threads: Vec<_> =
                    together.iter().map(|key| (key.clone(), scope.spawn(move || one(key)))).collect();
                threads
                    .into_iter()
                    .map(|(key, thread)| {
                        let start = thread.join().map_err(|_| Stop::Thread("an assignment"))??;
                        Ok((key, start))
                    })
                    .collect::<Result<Vec<_>, Stop>>()
            })?;
            starts.extend(read);
        }
        let mut tpl = TopicPartitionList::new();
        for (key, start) in &starts {
            tpl.add_partition_offset(&key.source, key.partition, Offset::Offset(start.read_from))?;
        }
        consumer
            .incremental_assign(&tpl)
            .map_err(|error| Stop::Kafka { what: "assigning partitions".to_owned(), error })?;
        let current = self.assigner.follower.now();
        let mut inner = self.inner();
        for (key, start) in starts {
            let Some(source) = current.source(&key.source) else { continue };
            inner.generation += 1;
            let generation = inner.generation;
            let desk = key.partition.unsigned_abs() as usize % self.desks.len().max(1);
            let owned = Owned {
                generation,
                desk,
                batch: Batch::new(key.clone(), generation),
                paused: false,
                position: start.read_from,
                at_end: false,
                mark: None,
                complete: false,
                mapped: source.map.is_some(),
            };
            self.telemetry.assigned(&key, start.assigned.progress.next.0);
            inner.owned.insert(key.clone(), owned);
            let source = Box::new(source.clone());
            self.tell(desk, ToWorker::Assigned { key, generation, source, start: Box::new(start) });
        }
        self.note(&inner);
        Ok(())
    }

    fn start(&self, key: &Key, partitions: i32) -> Result<Start, Stop> {
        let current = self.assigner.follower.now();
        let source = current
            .source(&key.source)
            .ok_or_else(|| Stop::Usage(format!("topic {} is no source of the ledger", key.source)))?;
        self.assigner.start(source, key.partition, partitions)
    }

    fn revoke(&self, consumer: &BaseConsumer<Self>, keys: &[Key]) -> Result<(), Stop> {
        let mut inner = self.inner();
        for key in keys {
            self.telemetry.revoked(key);
            if let Some(owned) = inner.owned.remove(key) {
                self.tell(owned.desk, ToWorker::Revoked { key: key.clone(), generation: owned.generation });
            }
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

    fn tell(&self, desk: usize, message: ToWorker) {
        if let Some(desk) = self.desks.get(desk) {
            // A worker that ended has said why.
            let _ = desk.inbox.send(message);
        }
    }

    fn hand_over(&self, owned: &mut Owned) {
        if owned.batch.records.is_empty() {
            return;
        }
        let (key, generation) = (owned.batch.key.clone(), owned.generation);
        let next = Batch::new(key, generation);
        let batch = std::mem::replace(&mut owned.batch, next);
        let (records, bytes) = (batch.records.len() as u64, batch.bytes.len() as u64);
        let newest = batch.records.iter().filter_map(|place| place.time).max();
        self.telemetry.polled(&batch.key, records, bytes, owned.position, newest);
        if let Some(desk) = self.desks.get(owned.desk) {
            desk.queued.fetch_add(batch.size(), Ordering::Relaxed);
        }
        self.tell(owned.desk, ToWorker::Records(batch));
    }
}

/// The polling thread.
pub struct Reader {
    /// A member of the group.
    pub consumer: BaseConsumer<Context>,
    /// What workers say.
    pub workers: Receiver<FromWorker>,
    /// What is seen of the topics from outside.
    pub ends: Receiver<Seen>,
    /// Whether this process still speaks to its group.
    pub pulse: Arc<Pulse>,
    /// End when everything that was there is recorded.
    pub once: bool,
    /// Commit the group's offsets, for lag tools.
    pub hints: bool,
    /// What was recorded.
    pub summary: Summary,
    /// What is said to people.
    pub say: fn(&str),
}

impl Reader {
    fn context(&self) -> &Arc<Context> {
        self.consumer.context()
    }

    /// Polls until it is stopped, then closes what is open.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Summary, Stop> {
        let mut hints: BTreeMap<Key, i64> = BTreeMap::new();
        let mut waited = Instant::now();
        let (mut hinted, mut said, mut polled) = (Instant::now(), None::<Instant>, 0u32);
        while !stop.load(Ordering::Relaxed) {
            self.watch()?;
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    self.record(&message);
                    polled = polled.wrapping_add(1);
                    if !polled.is_multiple_of(64) {
                        continue;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => self.at_end(partition),
                Some(Err(error)) => self.error(error, &mut said)?,
                None => self.hand_over_all(),
            }
            self.context().telemetry.tick();
            self.serve(&mut hints)?;
            if hinted.elapsed() >= HINTS {
                hinted = Instant::now();
                self.hint(&mut hints);
            }
            if self.once && self.complete() {
                break;
            }
            if self.once && waited.elapsed() >= WAIT {
                waited = Instant::now();
                self.say_what_is_waited_for();
            }
        }
        self.close(&mut hints)
    }

    /// Whether the process stood still for so long that its group has given its partitions to others.
    fn watch(&self) -> Result<(), Stop> {
        let mut inner = self.context().inner();
        if let Some(stop) = inner.failed.take() {
            return Err(stop);
        }
        let next = inner.generation.saturating_add(1);
        let Some(still) = self.pulse.beat(next) else { return Ok(()) };
        let keys: Vec<Key> = inner.owned.keys().cloned().collect();
        let had = inner.generation > 0;
        drop(inner);
        if had {
            // Where the group was faster, its partitions are revoked already.
            (self.say)(&format!(
                "stood still for {} s, longer than its session: its partitions may be another's. What was open is \
                 dropped, none of it is written; reading goes on where the ledger ends",
                still.as_secs(),
            ));
            self.context().telemetry.failed("stood_still", "stood still for longer than its session");
        }
        if keys.is_empty() { Ok(()) } else { self.again(&keys) }
    }

    /// Drops partitions and begins them again at their chains' tails.
    fn again(&self, keys: &[Key]) -> Result<(), Stop> {
        let context = self.context();
        context.revoke(&self.consumer, keys)?;
        context.assign(&self.consumer, keys)
    }

    fn record(&self, message: &impl Message) {
        let context = self.context();
        let mut inner = context.inner();
        // A lookup by borrowed parts would need another key type; a source's name is short.
        let key = Key { source: message.topic().into(), partition: message.partition() };
        let Some(owned) = inner.owned.get_mut(&key) else { return };
        owned.at_end = false;
        owned.position = message.offset().saturating_add(1);
        owned.batch.bytes.extend_from_slice(message.payload().unwrap_or_default());
        let outer = owned.mapped.then(|| Box::new(Outer::of(message)));
        owned.batch.outer += outer.as_ref().map_or(0, |outer| outer.bytes());
        let place = Place {
            offset: message.offset(),
            // One that no record can state is none.
            time: message.timestamp().to_millis().and_then(Timestamp::of_millis),
            end: owned.batch.bytes.len(),
            outer,
        };
        owned.batch.records.push(place);
        if owned.batch.size() >= BATCH_BYTES || owned.batch.records.len() >= BATCH_RECORDS {
            context.hand_over(owned);
        }
    }

    fn hand_over_all(&self) {
        let context = self.context();
        context.inner().owned.values_mut().for_each(|owned| context.hand_over(owned));
    }

    /// librdkafka says that nothing more is there to be read, of a partition of some topic.
    fn at_end(&self, partition: i32) {
        let mut inner = self.context().inner();
        inner.owned.iter_mut().filter(|(key, _)| key.partition == partition).for_each(|(_, owned)| {
            owned.at_end = true;
        });
    }

    fn error(&self, error: KafkaError, said: &mut Option<Instant>) -> Result<(), Stop> {
        let (code, error) = match Trouble::of(error) {
            Trouble::Ends(stop) => return Err(stop),
            Trouble::OutOfRange(error) => {
                return Err(Stop::Topic(format!(
                    "a position is outside its topic ({error}): retention took records before they were recorded, or \
                     the topic was made again. Start again: the start says which partition, and what to do"
                )));
            }
            Trouble::Again => {
                let keys: Vec<Key> = self.context().inner().owned.keys().cloned().collect();
                return self.again(&keys);
            }
            Trouble::Passes { code, error } => (code, error),
        };
        self.context().telemetry.failed(&code, &error.to_string());
        if said.is_none_or(|at| at.elapsed() >= SAY) {
            *said = Some(Instant::now());
            (self.say)(&format!("the broker: {error}; trying again"));
        }
        Ok(())
    }

    /// What came from the other threads; then what follows from it.
    fn serve(&mut self, hints: &mut BTreeMap<Key, i64>) -> Result<(), Stop> {
        loop {
            match self.workers.try_recv() {
                Ok(FromWorker::Recorded { key, recorded }) => {
                    self.summary.add(&recorded);
                    hints.insert(key, recorded.next);
                }
                Ok(FromWorker::Reassign { key, generation, why }) => {
                    let ours = self.context().inner().owned.get(&key).map(|owned| owned.generation);
                    if ours == Some(generation) {
                        self.summary.lost += 1;
                        (self.say)(&format!("{key}: {why}"));
                        self.again(std::slice::from_ref(&key))?;
                    }
                }
                Ok(FromWorker::Failed(stop)) => return Err(stop),
                Ok(FromWorker::Closed) => {}
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Stop::Thread("the workers")),
            }
        }
        let context = self.context().clone();
        while let Ok(seen) = self.ends.try_recv() {
            match seen {
                Seen::End { key, high, at } => {
                    if let Some(owned) = context.inner().owned.get_mut(&key) {
                        owned.mark = Some((high, at));
                        context.telemetry.seen(&key, high, owned.position);
                    }
                }
                Seen::Partitions { source, count } => {
                    for desk in 0..context.desks.len() {
                        context.tell(desk, ToWorker::Partitions { source: source.clone(), count });
                    }
                }
            }
        }
        self.barriers();
        self.hold_back()
    }

    /// A partition that was read to an end which was seen at a moment was read through that moment.
    fn barriers(&self) {
        let context = self.context();
        let mut inner = context.inner();
        let waiting = |owned: &Owned| owned.at_end && owned.mark.is_some();
        if !inner.owned.values().any(waiting) {
            return;
        }
        // Behind the last record there may be markers of transactions: the consumer's own position knows them.
        let positions = self.consumer.position().ok();
        for (key, owned) in inner.owned.iter_mut().filter(|(_, owned)| waiting(owned)) {
            let polled = positions.as_ref().and_then(|tpl| tpl.find_partition(&key.source, key.partition));
            if let Some(Offset::Offset(at)) = polled.map(|element| element.offset()) {
                owned.position = owned.position.max(at);
            }
            let Some((high, at)) = owned.mark else { continue };
            if owned.position < high {
                continue;
            }
            owned.mark = None;
            owned.complete = true;
            context.telemetry.seen(key, high, owned.position);
            context.hand_over(owned);
            let barrier = ToWorker::Barrier {
                key: key.clone(),
                generation: owned.generation,
                next: owned.position,
                read_through: at,
            };
            context.tell(owned.desk, barrier);
        }
    }

    /// Pauses the partitions of a worker that is behind, and lets them go on when it has caught up.
    fn hold_back(&self) -> Result<(), Stop> {
        let context = self.context();
        let mut inner = context.inner();
        let (mut pause, mut resume) = (Vec::new(), Vec::new());
        for (key, owned) in &mut inner.owned {
            let queued = context.desks.get(owned.desk).map_or(0, |desk| desk.queued.load(Ordering::Relaxed));
            if !owned.paused && queued >= HIGH {
                owned.paused = true;
                pause.push(key.clone());
            } else if owned.paused && queued <= LOW {
                owned.paused = false;
                resume.push(key.clone());
            }
        }
        drop(inner);
        pause.iter().for_each(|key| context.telemetry.paused(key, true));
        resume.iter().for_each(|key| context.telemetry.paused(key, false));
        if !pause.is_empty() {
            self.consumer.pause(&list(&pause))?;
        }
        if !resume.is_empty() {
            self.consumer.resume(&list(&resume))?;
        }
        Ok(())
    }

    /// A run to the end ends when the transactions do that were open: their records are among those that were there.
    fn say_what_is_waited_for(&self) {
        let inner = self.context().inner();
        if inner.owned.is_empty() {
            (self.say)(
                "no partition is this process's: another member of its group has them, or had them until its session ends. \
                 A run beside a recorder takes another --group",
            );
        }
        for (key, owned) in inner.owned.iter().filter(|(_, owned)| owned.at_end && !owned.complete) {
            if let Some((high, _)) = owned.mark.filter(|(high, _)| owned.position < *high) {
                (self.say)(&format!(
                    "{key}: read to offset {}, and the topic ends at {high}: an open transaction holds back the rest, and \
                     this run waits for its end",
                    owned.position
                ));
            }
        }
    }

    fn complete(&self) -> bool {
        let inner = self.context().inner();
        !inner.owned.is_empty() && inner.owned.values().all(|owned| owned.complete)
    }

    /// For lag tools alone; where it fails, the next one says more.
    fn hint(&self, hints: &mut BTreeMap<Key, i64>) {
        if !self.hints {
            return hints.clear();
        }
        let owned: Vec<Key> = self.context().inner().owned.keys().cloned().collect();
        hints.retain(|key, _| owned.contains(key));
        let mut tpl = TopicPartitionList::new();
        for (key, next) in hints.iter() {
            if tpl.add_partition_offset(&key.source, key.partition, Offset::Offset(*next)).is_err() {
                return;
            }
        }
        if tpl.count() > 0 && self.consumer.commit(&tpl, CommitMode::Async).is_ok() {
            hints.clear();
        }
    }

    /// Hands over what was polled, has every chunk closed, and waits for the appends.
    fn close(mut self, hints: &mut BTreeMap<Key, i64>) -> Result<Summary, Stop> {
        let context = self.context().clone();
        context.telemetry.draining();
        self.hand_over_all();
        let desks = context.desks.len();
        for desk in 0..desks {
            context.tell(desk, ToWorker::Close);
        }
        let begun = Instant::now();
        let mut closed = 0;
        while closed < desks {
            self.pulse.beat(u64::MAX);
            match self.workers.recv_timeout(POLL) {
                Ok(FromWorker::Closed) => closed += 1,
                Ok(FromWorker::Recorded { key, recorded }) => {
                    self.summary.add(&recorded);
                    hints.insert(key, recorded.next);
                }
                Ok(FromWorker::Failed(stop)) => return Err(stop),
                // Somebody else records it.
                Ok(FromWorker::Reassign { .. }) => {}
                Err(_) if begun.elapsed() > DRAIN => {
                    (self.say)(&format!(
                        "{} of {desks} workers did not close within {} s: what was open is dropped, and read again by \
                         the next recorder",
                        desks - closed,
                        DRAIN.as_secs()
                    ));
                    break;
                }
                Err(_) => {}
            }
        }
        self.hint(hints);
        let inner = context.inner();
        self.summary.rebalances = inner.rebalances;
        self.summary.partitions = inner.owned.len();
        drop(inner);
        Ok(self.summary)
    }
}
