//! A worker: feeds the recorders of its partitions, one batch after the other. It never asks the broker anything, and
//! writes nothing itself: what a recorder wants written goes to the committers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use lastcall_event::Timestamp;
use lastcall_event::source::Header;
use lastcall_ledger::chain::Append;
use lastcall_ledger::entry::{Balance, Chunk, LastRecord};
use lastcall_ledger::position::{NextOffset, Offset, Partition};
use lastcall_ledger::redaction::Redaction;
use lastcall_ledger::state::SourceInfo;
use lastcall_ledger::{fill_random, system_now};
use lastcall_record::{Action, Commit, Incoming, Input, Limits, Recorder, Spec};

use super::assign::Start;
use super::commits::Job;
use super::follower::{Configuration, Follower};
use super::{Key, Stop};
use crate::kafka::member::Outer;
use crate::kafka::pulse::Pulse;

/// Between two looks at the age of chunks.
const TICK: Duration = Duration::from_millis(250);

/// Records of one partition as they were polled, copied once.
pub struct Batch {
    /// The partition.
    pub key: Key,
    /// Of which assignment.
    pub generation: u64,
    /// Their values, one after the other.
    pub bytes: Vec<u8>,
    /// Where each stands.
    pub records: Vec<Place>,
    /// Bytes of their keys and headers.
    pub outer: usize,
}

impl Batch {
    /// An empty one.
    pub fn new(key: Key, generation: u64) -> Self {
        Self { key, generation, bytes: Vec::new(), records: Vec::new(), outer: 0 }
    }

    /// Bytes that it holds in memory, about.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.outer + self.records.len() * size_of::<Place>()
    }
}

/// Where a record of a batch stands.
pub struct Place {
    /// Its offset.
    pub offset: i64,
    /// Its message's time.
    pub time: Option<Timestamp>,
    /// One past its last byte in the batch; a tombstone has none.
    pub end: usize,
    /// Key and headers, where a map may read them.
    pub outer: Option<Box<Outer>>,
}

/// What a worker is told.
pub enum ToWorker {
    /// A partition is ours.
    Assigned {
        /// The partition.
        key: Key,
        /// Of which assignment.
        generation: u64,
        /// Its source.
        source: Box<SourceInfo>,
        /// Where it goes on.
        start: Box<Start>,
    },
    /// It is not ours any more.
    Revoked {
        /// The partition.
        key: Key,
        /// Of which assignment.
        generation: u64,
    },
    /// Records.
    Records(Batch),
    /// Everything before `next` was delivered, and that was everything at a moment.
    Barrier {
        /// The partition.
        key: Key,
        /// Of which assignment.
        generation: u64,
        /// The position.
        next: i64,
        /// The moment.
        read_through: Timestamp,
    },
    /// A source has this many partitions now.
    Partitions {
        /// The source.
        source: Arc<str>,
        /// Its partitions.
        count: i32,
    },
    /// A committer's answer.
    Appended {
        /// The partition.
        key: Key,
        /// Of which assignment.
        generation: u64,
        /// What the ledger said.
        answer: Result<Append, Stop>,
        /// What stands in the ledger if it won.
        recorded: Recorded,
    },
    /// Nothing more will come: close what is open and say when it is written.
    Close,
    /// End now, whatever is open.
    End,
}

/// What one entry added.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Where the partition stands after it.
    pub next: i64,
    /// What its chunk holds; none of a heartbeat.
    pub chunk: Option<Box<Added>>,
}

/// What a chunk holds.
#[derive(Clone, Debug, Default)]
pub struct Added {
    /// The balanced counts.
    pub balance: Balance,
    /// Dead letters by reason.
    pub dead_reasons: BTreeMap<String, u64>,
    /// Comparisons by result.
    pub results: BTreeMap<&'static str, u64>,
}

impl Added {
    /// Of a chunk.
    pub fn of(chunk: &Chunk) -> Self {
        let mut results = BTreeMap::new();
        for counts in chunk.tallies.iter().map(|tally| &tally.counts) {
            for (result, count) in counts.by_result() {
                *results.entry(result.as_str()).or_default() += count;
            }
        }
        results.retain(|_, count| *count > 0);
        Self { balance: chunk.balance, dead_reasons: chunk.dead_reasons.clone(), results }
    }
}

/// What a worker tells the reader.
pub enum FromWorker {
    /// An entry was appended.
    Recorded {
        /// The partition.
        key: Key,
        /// What it added.
        recorded: Recorded,
    },
    /// What was open is dropped: read the tail and begin there again.
    Reassign {
        /// The partition.
        key: Key,
        /// Of which assignment.
        generation: u64,
        /// Why.
        why: &'static str,
    },
    /// Something that ends the process.
    Failed(Stop),
    /// Everything that was open is written.
    Closed,
}

struct Held {
    generation: u64,
    source: Box<SourceInfo>,
    recorder: Recorder,
    /// The rules under which its chunks are opened.
    redaction: Option<Redaction>,
    /// The last record of the chain: whoever delivers another one in its place reads another topic.
    last: Option<LastRecord>,
    /// The topic is not compacted: a record that is not there any more was another topic's.
    keeps_all: bool,
    /// Another writer was faster: what comes of this assignment is passed over until there is a new one.
    over: bool,
}

/// One worker.
pub struct Worker {
    /// What it is told.
    pub inbox: Receiver<ToWorker>,
    /// Given to committers for their answers.
    pub own: Sender<ToWorker>,
    /// The committers.
    pub commits: Sender<Job>,
    /// The reader.
    pub reader: Sender<FromWorker>,
    /// The control chain.
    pub follower: Arc<Follower>,
    /// When chunks close.
    pub limits: Limits,
    /// Bytes that this worker's open chunks may hold together.
    pub budget: usize,
    /// Bytes in its inbox.
    pub queued: Arc<AtomicUsize>,
    /// Whether the process still speaks to its group.
    pub pulse: Arc<Pulse>,
    /// The ledger's time comes from clock records.
    pub simulated: bool,
}

impl Worker {
    /// Works until it is closed or something fails.
    pub fn run(self) {
        let reader = self.reader.clone();
        if let Err(stop) = self.work() {
            let _ = reader.send(FromWorker::Failed(stop));
        }
    }

    fn work(self) -> Result<(), Stop> {
        let mut held: BTreeMap<Key, Held> = BTreeMap::new();
        let mut waiting: Vec<Job> = Vec::new();
        let mut closing = false;
        let mut ticked = Instant::now();
        loop {
            match self.inbox.recv_timeout(TICK) {
                Ok(ToWorker::Close) => {
                    closing = true;
                    for (key, one) in &mut held {
                        self.step(key, one, Input::Close, &mut waiting)?;
                    }
                }
                Ok(ToWorker::End) => return Ok(()),
                Ok(message) => self.take(message, &mut held, &mut waiting)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                let current = self.follower.now();
                for (key, one) in &mut held {
                    self.configure(&current, key, one, &mut waiting)?;
                    self.step(key, one, Input::Tick, &mut waiting)?;
                }
            }
            self.fit(&mut held, &mut waiting)?;
            self.send(&held, &mut waiting);
            if closing && waiting.is_empty() && held.values().all(|one| one.recorder.is_idle()) {
                let _ = self.reader.send(FromWorker::Closed);
                return Ok(());
            }
        }
    }

    fn take(
        &self,
        message: ToWorker,
        held: &mut BTreeMap<Key, Held>,
        waiting: &mut Vec<Job>,
    ) -> Result<(), Stop> {
        match message {
            ToWorker::Assigned { key, generation, source, start } => {
                let one = self.assigned(&key, generation, source, *start)?;
                held.insert(key, one);
            }
            ToWorker::Revoked { key, generation } => {
                if held.get(&key).is_some_and(|one| one.generation <= generation) {
                    held.remove(&key);
                }
            }
            ToWorker::Records(batch) => {
                self.queued.fetch_sub(batch.size(), Ordering::Relaxed);
                if let Some(one) = current(held, &batch.key, batch.generation) {
                    self.batch(&batch, one, waiting)?;
                }
            }
            ToWorker::Barrier { key, generation, next, read_through } => {
                if let Some(one) = current(held, &key, generation) {
                    let barrier = Input::Barrier {
                        next: NextOffset(next),
                        prefix: None,
                        read_through: Some(read_through),
                        is_final: false,
                    };
                    self.step(&key, one, barrier, waiting)?;
                }
            }
            ToWorker::Partitions { source, count } => {
                for (key, one) in held.iter_mut().filter(|(key, one)| key.source == source && !one.over) {
                    self.step(key, one, Input::Partitions(count), waiting)?;
                }
            }
            ToWorker::Appended { key, generation, answer, recorded } => {
                let answer = answer?;
                let Some(one) = current(held, &key, generation) else {
                    return Ok(());
                };
                if matches!(answer, Append::Won(_)) {
                    let _ = self.reader.send(FromWorker::Recorded { key: key.clone(), recorded });
                }
                self.step(&key, one, Input::Appended(answer), waiting)?;
            }
            ToWorker::Close | ToWorker::End => {}
        }
        Ok(())
    }

    fn assigned(
        &self,
        key: &Key,
        generation: u64,
        source: Box<SourceInfo>,
        start: Start,
    ) -> Result<Held, Stop> {
        let spec = Spec {
            source: source.name.clone(),
            partition: Partition(key.partition),
            preset: source.preset,
            dense: false,
            simulated: self.simulated,
            lateness_ms: source.lateness_ms,
        };
        let current = self.follower.refresh()?;
        let config = self.follower.config(&current, &source)?;
        let redaction = current.redaction(&source.name).cloned();
        let random = Box::new(|to: &mut [u8]| fill_random(to).map_err(|e| e.to_string()));
        let decoder = self.follower.decoder(&source)?;
        let mut recorder = Recorder::new(spec, self.limits, config, random).reading(decoder);
        let (tail, progress) = (start.assigned.tail, start.assigned.progress);
        recorder.step(Input::Assigned { tail, progress }, system_now())?;
        let (last, keeps_all) = (start.last, start.keeps_all);
        Ok(Held { generation, source, recorder, redaction, last, keeps_all, over: false })
    }

    fn batch(&self, batch: &Batch, one: &mut Held, waiting: &mut Vec<Job>) -> Result<(), Stop> {
        let now = system_now();
        let mut begin = 0;
        for place in &batch.records {
            if one.over {
                break;
            }
            let bytes = batch.bytes.get(begin..place.end).unwrap_or_default();
            begin = place.end;
            if let Some(last) = one.last.take()
                && (last.offset.0 == place.offset && !one.recorder.knows(&last, bytes)
                    || last.offset.0 < place.offset && one.keeps_all)
            {
                return Err(Stop::Topic(format!(
                    "{}: the record at offset {} is not the one that was recorded: the topic was deleted and made \
                     again. Its new records are another source: give the topic another name, or record it into \
                     another ledger",
                    batch.key, last.offset.0
                )));
            }
            let headers: Vec<Header<'_>> = place
                .outer
                .iter()
                .flat_map(|outer| &outer.headers)
                .map(|(name, value)| Header { name, value })
                .collect();
            let incoming = Incoming {
                offset: Offset(place.offset),
                next: NextOffset(place.offset.saturating_add(1)),
                bytes,
                key: place.outer.as_ref().and_then(|outer| outer.key.as_deref()),
                headers: &headers,
                length: bytes.len() as u64,
                too_long: false,
                cut_off: false,
                prefix: None,
                time: place.time,
            };
            let actions = one.recorder.step(Input::Record(incoming), now)?;
            if !actions.is_empty() {
                self.act(&batch.key, one, actions, waiting)?;
            }
        }
        Ok(())
    }

    fn step(&self, key: &Key, one: &mut Held, input: Input<'_>, waiting: &mut Vec<Job>) -> Result<(), Stop> {
        let actions = one.recorder.step(input, system_now())?;
        self.act(key, one, actions, waiting)
    }

    fn act(
        &self,
        key: &Key,
        one: &mut Held,
        actions: Vec<Action>,
        waiting: &mut Vec<Job>,
    ) -> Result<(), Stop> {
        for action in actions {
            match action {
                Action::Commit(commit) => {
                    // Before the next chunk opens; and whether this one still may be written.
                    let current = self.follower.refresh()?;
                    if current.redaction(&one.source.name) != one.redaction.as_ref() {
                        self.drop_it(
                            key,
                            one,
                            "its redaction was changed: what was open is read again under it",
                        );
                        continue;
                    }
                    waiting.push(self.job(key, one, commit));
                    self.configure(&current, key, one, waiting)?;
                }
                Action::Reassign => {
                    self.drop_it(key, one, "another recorder was faster; reading goes on at its tail")
                }
            }
        }
        Ok(())
    }

    /// Tells a recorder what the control chain says now: what is open closes, and its next chunk opens under that.
    fn configure(
        &self,
        current: &Configuration,
        key: &Key,
        one: &mut Held,
        waiting: &mut Vec<Job>,
    ) -> Result<(), Stop> {
        if one.over || current.control().seq <= one.recorder.control() {
            return Ok(());
        }
        let config = Box::new(self.follower.config(current, &one.source)?);
        self.step(key, one, Input::Configured(config), waiting)
    }

    /// What is open is dropped; the partition is assigned again at its chain's tail.
    fn drop_it(&self, key: &Key, one: &mut Held, why: &'static str) {
        one.over = true;
        let (key, generation) = (key.clone(), one.generation);
        let _ = self.reader.send(FromWorker::Reassign { key, generation, why });
    }

    fn job(&self, key: &Key, one: &Held, commit: Box<Commit>) -> Job {
        Job { key: key.clone(), generation: one.generation, commit, answer: self.own.clone() }
    }

    /// Hands over what is to be written, while this process is sure that it is a member of its group.
    fn send(&self, held: &BTreeMap<Key, Held>, waiting: &mut Vec<Job>) {
        waiting.retain(|job| held.get(&job.key).is_some_and(|one| one.generation == job.generation));
        for job in waiting.extract_if(.., |job| self.pulse.allows(job.generation)) {
            let _ = self.commits.send(job);
        }
    }

    /// At the limit of its memory the largest chunk closes first.
    fn fit(&self, held: &mut BTreeMap<Key, Held>, waiting: &mut Vec<Job>) -> Result<(), Stop> {
        let sizes: Vec<usize> = held.values_mut().map(|one| one.recorder.held()).collect();
        if sizes.iter().sum::<usize>() < self.budget {
            return Ok(());
        }
        let idle = held.iter_mut().zip(sizes).filter(|((_, one), _)| !one.recorder.in_flight());
        match idle.max_by_key(|(_, size)| *size) {
            Some(((key, one), _)) => self.step(key, one, Input::Close, waiting),
            None => Ok(()),
        }
    }
}

/// What is held of a partition, if it still is of this assignment.
fn current<'a>(held: &'a mut BTreeMap<Key, Held>, key: &Key, generation: u64) -> Option<&'a mut Held> {
    held.get_mut(key).filter(|one| one.generation == generation && !one.over)
}
