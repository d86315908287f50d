//! The one thread that polls the broker. It hands copies of messages to the lanes of their partitions and never works on
//! them; it assigns partitions where their output ends, and holds them back while their lanes are behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use lastcall_event::Timestamp;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Offset, TopicPartitionList};

use super::lane::{Message, ToLane};
use super::owned::{Context, Owned};
use super::service::Summary;
use super::start::Counts;
use crate::Stop;
use crate::kafka::Key;
use crate::kafka::ends::Seen;
use crate::kafka::member::{Outer, Trouble, list};

const POLL: Duration = Duration::from_millis(50);
/// Polls between two looks at what the other threads say.
const TURN: u32 = 64;
/// How long ending may take, with the calls and acknowledgements that it waits for.
const DRAIN: Duration = Duration::from_secs(25);
const HINTS: Duration = Duration::from_secs(5);
/// Ends of one partition that were seen and are not reached.
const ENDS: usize = 32;
const WAIT: Duration = Duration::from_secs(10);
const SAY: Duration = Duration::from_secs(60);

/// The polling thread.
pub struct Reader {
    /// A member of the group.
    pub consumer: BaseConsumer<Context>,
    /// What is seen of the topics from outside.
    pub ends: Receiver<Seen>,
    /// What ends the process.
    pub failed: Receiver<Stop>,
    /// End when everything that was there is mirrored.
    pub once: bool,
    /// Bytes that may wait for all lanes together.
    pub waiting: usize,
    /// How many partitions each topic had when it was last looked at, and since when they differ.
    pub counts: Counts,
}

impl Reader {
    fn context(&self) -> &Arc<Context> {
        self.consumer.context()
    }

    /// Polls until it is stopped, then waits for what is under way.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Summary, Stop> {
        let (mut hinted, mut said, mut waited) = (Instant::now(), None, Instant::now());
        let mut polled = 0u32;
        while !stop.load(Ordering::Relaxed) {
            self.watch()?;
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    self.message(&message);
                    polled = polled.wrapping_add(1);
                    if !polled.is_multiple_of(TURN) {
                        continue;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    let mut inner = self.context().inner();
                    let of = |key: &Key| key.partition == partition;
                    inner.owned.iter_mut().filter(|(key, _)| of(key)).for_each(|(_, o)| o.at_end = true);
                }
                Some(Err(error)) => self.trouble(error, &mut said)?,
                None => {}
            }
            self.serve()?;
            if hinted.elapsed() >= HINTS {
                hinted = Instant::now();
                self.hint();
            }
            if self.once && self.complete() {
                break;
            }
            if self.once && waited.elapsed() >= WAIT {
                waited = Instant::now();
                self.say_what_is_waited_for();
            }
        }
        self.close(stop)
    }

    /// Whether the process stood still for so long that its group has given its partitions to others.
    fn watch(&self) -> Result<(), Stop> {
        let context = self.context();
        let mut inner = context.inner();
        let ended = inner.owned.values().any(|owned| owned.lane.is_finished());
        if let Ok(stop) = self.failed.try_recv() {
            return Err(stop);
        }
        if ended {
            return Err(Stop::Thread("a window"));
        }
        if let Some(stop) = inner.failed.take() {
            return Err(stop);
        }
        let next = inner.generation.saturating_add(1);
        let Some(still) = context.shared.pulse.beat(next) else { return Ok(()) };
        let keys: Vec<Key> = inner.owned.keys().cloned().collect();
        let had = inner.generation > 0;
        drop(inner);
        if had {
            (context.say)(&format!(
                "stood still for {} s, longer than its session: its partitions may be another's. What was under way is \
                 dropped, no row of it is written; mirroring goes on where the output ends",
                still.as_secs(),
            ));
            context.shared.telemetry.failed("stood_still", "stood still for longer than its session");
        }
        if keys.is_empty() { Ok(()) } else { self.again(&keys) }
    }

    /// Drops partitions and begins them again where their output ends.
    fn again(&self, keys: &[Key]) -> Result<(), Stop> {
        let context = self.context();
        context.revoke(&self.consumer, keys)?;
        context.assign(&self.consumer, keys)
    }

    fn message(&self, message: &impl rdkafka::Message) {
        let context = self.context();
        let mut inner = context.inner();
        let key = Key { source: message.topic().into(), partition: message.partition() };
        let Some(owned) = inner.owned.get_mut(&key) else { return };
        let outer = context.shared.reading.is_mapped().then(|| Outer::of(message));
        owned.message(Message {
            offset: message.offset(),
            // One that no record can state is none.
            time: message.timestamp().to_millis().and_then(Timestamp::of_millis),
            value: message.payload().unwrap_or_default().to_vec(),
            outer,
        });
    }

    fn trouble(&self, error: KafkaError, said: &mut Option<Instant>) -> Result<(), Stop> {
        let context = self.context();
        let all = || -> Vec<Key> { context.inner().owned.keys().cloned().collect() };
        let (code, error) = match Trouble::of(error) {
            Trouble::Ends(stop) => return Err(stop),
            // Retention was faster; where the output ends, the start says what is gone.
            Trouble::OutOfRange(_) | Trouble::Again => return self.again(&all()),
            Trouble::Passes { code, error } => (code, error),
        };
        context.shared.telemetry.failed(&code, &error.to_string());
        if said.is_none_or(|at| at.elapsed() >= SAY) {
            *said = Some(Instant::now());
            (context.say)(&format!("the broker: {error}; trying again"));
        }
        Ok(())
    }

    /// What came from the other threads; then what follows from it.
    fn serve(&mut self) -> Result<(), Stop> {
        let context = self.context().clone();
        context.shared.telemetry.tick();
        while let Ok(seen) = self.ends.try_recv() {
            match seen {
                Seen::End { key, high, at } => {
                    let mut inner = context.inner();
                    let Some(owned) = inner.owned.get_mut(&key) else { continue };
                    if owned.ends.len() < ENDS {
                        owned.ends.push_back((high, at));
                    }
                    owned.reached();
                    context.shared.telemetry.seen(&key, high, owned.position);
                }
                Seen::Partitions { source, count } => self.counts.seen(&source, count)?,
            }
        }
        self.markers();
        self.told();
        self.hold_back()
    }

    /// Behind the last record there may be markers of transactions: the consumer's own position knows them.
    fn markers(&self) {
        let mut inner = self.context().inner();
        let waiting = |owned: &Owned| owned.at_end && !owned.ends.is_empty();
        if !inner.owned.values().any(waiting) {
            return;
        }
        let positions = self.consumer.position().ok();
        for (key, owned) in inner.owned.iter_mut().filter(|(_, owned)| waiting(owned)) {
            let polled = positions.as_ref().and_then(|tpl| tpl.find_partition(&key.source, key.partition));
            if let Some(Offset::Offset(at)) = polled.map(|element| element.offset()) {
                owned.position = owned.position.max(at);
            }
            owned.reached();
        }
    }

    /// What was polled since it was last told.
    fn told(&self) {
        let context = self.context();
        for (key, owned) in &mut context.inner().owned {
            let (records, bytes, newest) = std::mem::take(&mut owned.polled);
            if records > 0 {
                context.shared.telemetry.polled(key, records, bytes, owned.position, newest);
            }
        }
    }

    /// Pauses the partitions whose lanes are behind, and lets them go on when these have caught up.
    fn hold_back(&self) -> Result<(), Stop> {
        let context = self.context();
        let mut inner = context.inner();
        let high = self.waiting / inner.owned.len().max(1);
        let (mut pause, mut resume) = (Vec::new(), Vec::new());
        for (key, owned) in &mut inner.owned {
            let queued = owned.lane.queued.load(Ordering::Relaxed);
            if !owned.paused && queued >= high {
                owned.paused = true;
                pause.push(key.clone());
            } else if owned.paused && queued <= high / 4 {
                owned.paused = false;
                resume.push(key.clone());
            }
        }
        drop(inner);
        pause.iter().for_each(|key| context.shared.telemetry.paused(key, true));
        resume.iter().for_each(|key| context.shared.telemetry.paused(key, false));
        if !pause.is_empty() {
            self.consumer.pause(&list(&pause))?;
        }
        if !resume.is_empty() {
            self.consumer.resume(&list(&resume))?;
        }
        Ok(())
    }

    fn complete(&self) -> bool {
        let inner = self.context().inner();
        !inner.owned.is_empty() && inner.owned.values().all(|owned| owned.complete)
    }

    /// A run to the end ends when the transactions do that were open: their records are among those that were there.
    fn say_what_is_waited_for(&self) {
        let context = self.context();
        let inner = context.inner();
        if inner.owned.is_empty() {
            (context.say)(
                "no partition is this process's: another member of its group has them, or had them until its session ends. \
                 A run beside a mirror takes another --group",
            );
        }
        for (key, owned) in inner.owned.iter().filter(|(_, owned)| owned.at_end && !owned.complete) {
            if let Some((high, _)) = owned.ends.back().filter(|(high, _)| owned.position < *high) {
                (context.say)(&format!(
                    "{key}: read to offset {}, and the topic ends at {high}: an open transaction holds back the rest, and \
                     this run waits for its end",
                    owned.position
                ));
            }
        }
    }

    /// The group's offsets, for lag tools alone; where it fails, the next one says more.
    fn hint(&self) {
        let mut tpl = TopicPartitionList::new();
        for (key, owned) in &self.context().inner().owned {
            let done = owned.lane.done.load(Ordering::SeqCst);
            if tpl.add_partition_offset(&key.source, key.partition, Offset::Offset(done)).is_err() {
                return;
            }
        }
        if tpl.count() > 0 {
            let _ = self.consumer.commit(&tpl, CommitMode::Async);
        }
    }

    /// Waits for the rows of what is under way; a run to the end for all that was handed over.
    fn close(self, stop: &AtomicBool) -> Result<Summary, Stop> {
        let context = self.context().clone();
        context.shared.telemetry.draining();
        let keys: Vec<Key> = {
            let mut inner = context.inner();
            inner.closing = true;
            let lanes = inner.owned.values();
            lanes.for_each(|owned| drop(owned.lane.inbox.send(ToLane::Close)));
            inner.owned.keys().cloned().collect()
        };
        self.consumer.pause(&list(&keys))?;
        let mut begun = None;
        loop {
            if stop.load(Ordering::Relaxed) {
                context.shared.draining.store(true, Ordering::Relaxed);
                begun.get_or_insert_with(Instant::now);
            }
            if let Some(still) = context.shared.pulse.beat(u64::MAX) {
                return Err(Stop::Away(format!(
                    "stood still for {} s at the end, longer than its session: what has no row is read again by the next \
                     mirror",
                    still.as_secs()
                )));
            }
            // Stays a member of its group; what still comes of a poll is another start's.
            drop(self.consumer.poll(POLL));
            context.shared.telemetry.tick();
            while self.ends.try_recv().is_ok() {}
            self.told();
            let inner = context.inner();
            let closed = |owned: &Owned| owned.lane.closed.load(Ordering::SeqCst);
            let ended = inner.owned.values().any(|owned| owned.lane.is_finished() && !closed(owned));
            if let Ok(failed) = self.failed.try_recv() {
                return Err(failed);
            }
            if ended {
                return Err(Stop::Thread("a window"));
            }
            let count = inner.owned.values().filter(|owned| !closed(owned)).count();
            if count == 0 {
                break;
            }
            if begun.is_some_and(|at: Instant| at.elapsed() > DRAIN) {
                (context.say)(&format!(
                    "{count} partitions still wait for candidates or for the broker after {} s: what has no row is read \
                     again by the next mirror",
                    DRAIN.as_secs()
                ));
                break;
            }
        }
        self.hint();
        let inner = context.inner();
        Ok(Summary {
            messages: context.shared.telemetry.own().messages(),
            partitions: inner.owned.len(),
            rebalances: inner.rebalances,
            answers: Vec::new(),
        })
    }
}
